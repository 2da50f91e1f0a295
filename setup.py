"""What pyproject.toml cannot say: in a wheel the folder ``resources`` is called ``grpo_lab_resources``.

A name of ours, because everything that is installed lies in one folder. ``grpo_core.shipped`` knows both names.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

NAME = "grpo_lab_resources"


class BuildWithResources(build_py):
    """Copies the shipped files beside the packages, but for an editable installation, which has the source tree."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, NAME)
            shutil.copytree("resources", target, dirs_exist_ok=True)
            shutil.copyfile("LICENSE", target / "LICENSE")


setup(cmdclass={"build_py": BuildWithResources})
