"""What the commands of presenting do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application


class PresentingDeeds:
    """The part of the window's deeds that a class sees."""

    _p: Application

    def present(self) -> None:
        self._p.presenter.toggle()

    def leave_presenting(self) -> None:
        self._p.presenter.leave()

    def maximize_panel(self) -> None:
        """The panel in focus in the place of all; all again if one is."""
        panel, presenter = self._p.panel_in_focus(), self._p.presenter
        if panel is None and presenter.maximizer.panel is None:
            self._p.say(tr("No panel is in focus; click one, or reach it with Tab."), "info")
            return
        presenter.maximize(None if panel is None else panel.id)

    def blank_screen(self) -> None:
        self._p.presenter.toggle_blank()

    def toggle_ring(self) -> None:
        ring = self._p.presenter.ring
        ring.switch(not ring.on)

    def toggle_counter(self) -> None:
        counter = self._p.presenter.counter
        counter.switch(counter.isHidden())

    def toggle_speaker(self) -> None:
        speaker = self._p.presenter.speaker
        speaker.setVisible(not speaker.isVisible())

    def forward(self) -> None:
        """What the forward button of a remote does: first of all the picture comes back."""
        if self._p.presenter.blank.lift():
            return
        if self._p.lessons.given:
            self._p.deeds.lesson_next()
        else:
            self._p.player.stage()

    def back(self) -> None:
        if self._p.presenter.blank.lift():
            return
        if self._p.lessons.given:
            self._p.deeds.lesson_back()
        else:
            self._p.player.stage_back()
