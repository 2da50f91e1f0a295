"""A platform for verl that is this machine's processor, so that its FSDP engine can train without a GPU.

verl 0.9.1 supports only accelerators, but platforms and engines can be registered, which is done here. Nothing in verl
is changed: FSDP2 itself runs on processors, over gloo.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

os.environ["VERL_PLATFORM"] = "processor"

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry


class Memory(ModuleType):
    """``torch.cpu`` with the functions that verl calls on an accelerator's memory, which do nothing here."""

    def mem_get_info(self) -> tuple[int, int]:
        """Return the number of free bytes, and of all bytes, both as 0."""
        return 0, 0

    def get_device_name(self) -> str:
        """Return a name that is not in any table of speeds."""
        return "processor"

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("memory_", "max_memory_", "reset_", "empty_", "mem_")):
            return lambda *args, **kwargs: 0
        return getattr(torch.cpu, name)


@PlatformRegistry.register(platform="processor")
class Processor(PlatformBase):  # type: ignore[misc]
    """The processor with the interface of an accelerator: there is no memory to empty and nothing to wait for."""

    device_name = "cpu"
    vendor_name = "none"
    device_module = Memory("torch.cpu")

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return True

    def current_device(self) -> int:
        return "cpu"  # type: ignore[return-value]

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...

    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...

    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "NO_DEVICES"

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None: ...

    def profiler_stop(self) -> None: ...

    def get_device_uuid(self, device_id: int) -> str:
        return "processor"

    def ray_resource_name(self) -> str:
        return "CPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def ray_resource_options(self, num_gpus: float) -> dict[str, Any]:
        return {}

    def is_ipc_supported(self) -> bool:
        return False

    def rollout_env_vars(self) -> dict[str, str]:
        return {}

    def cudart(self) -> Any:
        return None
