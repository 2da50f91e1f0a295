"""The simulator as one HTML page that computes: one bandit, six algorithms, and the update's numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from app.build import this_build
from app.experiments.race.looks import LOOKS
from app.teaching.export.page.document import html_page
from app.teaching.export.page.markup import Markup, element, section, table
from grpo_core.config import Settings, described_at
from grpo_core.config.value_names import headed
from grpo_core.metrics import METRICS
from grpo_core.shipped import resource
from grpo_core.surrogates import SURROGATES
from grpo_core.teaching.simulator import program as parts
from grpo_core.text import tr

LARGEST = 300_000
"""Maximum size of the page in bytes, small enough to be sent by mail or put into a learning platform."""
SLIDERS: dict[str, tuple[str, Sequence[float]]] = {
    "passes": ("learner.mu", (1, 2, 3, 4, 6, 8, 16)),
    "beta": ("objective.beta", (0, 0.01, 0.02, 0.04, 0.05, 0.1, 0.2, 0.5, 1)),
    "epsilon": ("objective.clip_high", (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 5)),
    "rate": ("optimizer.learning_rate", (0.01, 0.03, 0.1, 0.3, 1, 3, 10)),
}
"""Settings with a slider, and the values at which it stops."""
CARDS = ("reward_mean", "kl", "max_prob", "entropy", "clip_fraction", "grad_norm", "loss", "reward_std")
CURVES = ("reward_mean", "kl", "entropy")


def simulator_page() -> bytes:
    script = "\n".join(
        (
            '(() => {\n"use strict";',
            parts.program(),
            f"const words = {json.dumps(_words(), ensure_ascii=False)};",
            resource("page/simulator.js").read_text(encoding="utf-8"),
            "})();",
        )
    )
    body = [
        element("p", tr("GRPO Lab’s simulator in one file"), " · ", str(this_build()), class_="muted"),
        element(
            "p",
            tr(
                "A policy chooses among ten actions, is rewarded, and is updated. Everything is computed here, by the "
                "formulas with which the program trains; the page loads nothing and sends nothing."
            ),
        ),
        _controls(),
        _policy(),
        _cards(),
        _history(),
        _detail(),
        _comparison(),
        _glossary(),
    ]
    without = tr("This browser does not run scripts in pages, so this page cannot compute anything.")
    return html_page(tr("GRPO simulator"), body, script, largest=LARGEST, without_script=without)


def _words() -> dict[str, object]:
    """Return everything that the script says, and the values that an algorithm begins with."""
    unclipped = [name for name in parts.ALGORITHMS if not _clips(name)]
    return {
        "shares": [name for name, metric in METRICS.items() if metric.share or name == "max_prob"],
        "units": {name: METRICS[name].unit for name in CARDS if METRICS[name].unit},
        "titles": {name: METRICS[name].title for name in CURVES},
        "cards": CARDS,
        "curves": CURVES,
        "compared": parts.COMPARED,
        "presets": {name: _preset(name) for name in parts.ALGORITHMS},
        "unclipped": unclipped,
        "none": "–",
        "yes": tr("yes"),
        "no": tr("no"),
        "said": tr("Update {step}: action {best} is the most likely, with {prob}; expected reward {reward}."),
        "done": tr("Update {step} of {last}"),
        "caption": tr("{title}: {last} at update {step}"),
        "group": tr("Update {step}: mean reward {mean}, standard deviation {std}; loss {loss}, gradient norm {norm}."),
        "ended": tr("{algorithm} {reward}"),
        "compared_said": tr("Expected reward after {last} updates: {ends}."),
    }


def _preset(name: str) -> dict[str, float]:
    """Return the values of the sliders that an algorithm begins with."""
    settings = parts.settings_of(name, 8)
    own = {slider: settings.get(path) for slider, (path, _) in SLIDERS.items() if slider != "rate"}
    return own if _clips(name) else {slider: value for slider, value in own.items() if slider != "epsilon"}


def _clips(name: str) -> bool:
    return "clip_high" in SURROGATES[parts.settings_of(name, 8).objective.surrogate].knobs


def _controls() -> Markup:
    usual = Settings()
    chosen = {"passes": usual.learner.mu, "rate": usual.optimizer.learning_rate} | _preset(parts.ALGORITHMS[0])
    selects = (
        ("algorithm", tr("Algorithm"), {name: name for name in parts.ALGORITHMS}, parts.ALGORITHMS[0]),
        ("landscape", tr("Reward"), {name: headed(name) for name in parts.LANDSCAPES}, usual.bandit.landscape),
        ("size", _titled("learner.group_size"), {str(n): str(n) for n in parts.SIZES}, str(usual.learner.group_size)),
        ("optimizer", _titled("optimizer.kind"), {name: headed(name) for name in parts.OPTIMIZERS}, "sgd"),
        ("seed", _titled("seed"), {str(seed): str(seed) for seed in parts.SEEDS}, str(usual.seed)),
    )
    fields = [
        element(
            "div",
            element("label", title, for_=name),
            element(
                "select",
                *(element("option", text, value=value, selected=value == at) for value, text in options.items()),
                id=name,
            ),
        )
        for name, title, options, at in selects
    ]
    fields += [
        element(
            "div",
            element("label", _titled(path), for_=name),
            element(
                "input",
                type="range",
                id=name,
                min=0,
                max=len(values) - 1,
                step=1,
                value=values.index(chosen[name]),
                data_values=" ".join(f"{value:g}" for value in values),
            ),
            element("span", "", id=f"{name}-shown", aria_hidden="true"),
        )
        for name, (path, values) in SLIDERS.items()
    ]
    buttons = {"step": tr("Step", "verb"), "ten": tr("10 updates"), "all": tr("To the end"), "again": tr("Start again")}
    note = tr(
        "A different reward or seed starts again; other changes count from the next update, and the history marks them."
    )
    return element(
        "form",
        element("fieldset", element("legend", tr("Settings")), element("div", *fields, class_="choices")),
        element("p", note, class_="muted"),
        element(
            "div", *(element("button", text, type="button", id=id) for id, text in buttons.items()), class_="fields"
        ),
        element("p", "", id="updates-done", class_="muted"),
        element("p", "", id="said", role="status"),
        id="controls",
    )


def _titled(path: str) -> str:
    about = described_at(path)
    return tr("Clip range ε") if path == "objective.clip_high" else about.named


def _figure(name: str, height: int, label: str, caption: str = "", **more: object) -> Markup:
    """Return an empty drawing with a caption. The script draws it, and fills an empty caption."""
    drawing = element("svg", id=name, viewBox=f"0 0 600 {height}", role="img", aria_label=label, **more)
    return element("figure", drawing, element("figcaption", caption, id=f"caption-{name}"))


def _policy() -> Markup:
    heads = (tr("Action"), tr("Reward"), tr("π now"), tr("π before"), tr("π_ref"))
    legend = tr("Bars: π now. Lines: π before the update; dashed, the reference. Dots: reward, highest on top.")
    figure = _figure("bars", 172, tr("Policy by action; the table has its numbers"), legend, class_="bars")
    numbers = element(
        "details",
        element("summary", tr("As a table")),
        table(tr("Policy by action"), heads, scrolls=True, id="actions"),
    )
    return section("policy", tr("Policy"), figure, numbers)


def _cards() -> Markup:
    cards = [element("div", element("dt", tr("Updates")), element("dd", "", id="step-count", class_="number"))]
    cards += [
        element(
            "div",
            element("dt", METRICS[name].title, title=METRICS[name].help),
            element("dd", "", id=f"card-{name}", class_="number"),
        )
        for name in CARDS
    ]
    return element("dl", *cards, class_="cards")


def _history() -> Markup:
    looks = {name: METRICS[name].colour for name in CURVES}
    figures = [
        _figure(name, 64, METRICS[name].title, preserveAspectRatio="none", data_classes=looks[name]) for name in CURVES
    ]
    return section("history", tr("History"), *figures)


def _detail() -> Markup:
    heads = [tr("Completion"), tr("Action"), tr("Reward"), tr("Advantage"), tr("Ratio"), tr("Clipped")]
    heads += [tr("KL estimate"), tr("d loss / d log π")]
    choice = element("div", element("label", tr("Pass"), for_="pass"), " ", element("select", id="pass"))
    legend = tr("▲ raises the action’s probability, ▼ lowers it.")
    return section(
        "step-detail",
        tr("Step detail"),
        choice,
        element("p", "", id="group"),
        table(tr("The group of the last update"), heads, scrolls=True, id="detail"),
        element("p", legend, class_="muted"),
    )


def _comparison() -> Markup:
    heads = (tr("Algorithm"), tr("Expected reward"), METRICS["max_prob"].title, METRICS["kl"].title)
    classes = " ".join(LOOKS[name].meaning.replace("_", "-") for name in parts.COMPARED)
    legend = tr("Solid: {first}. Dashed: {second}. Dotted: {third}.").format(
        **dict(zip(("first", "second", "third"), parts.COMPARED, strict=True))
    )
    lines = {"preserveAspectRatio": "none", "class_": "compared", "data_classes": classes}
    figure = _figure("compared-curves", 64, legend, legend, **lines)
    ends = table(tr("After {last} updates").format(last=parts.UPDATES), heads, scrolls=True, id="compared")
    results = element("div", figure, ends, id="comparison", hidden=True)
    words = tr("The same reward, seed, group size, optimizer and learning rate; the rest as each algorithm sets it.")
    button = element("button", tr("Compare three algorithms"), type="button", id="compare")
    return section("compare-title", tr("Three algorithms"), element("p", words), button, results)


def _glossary() -> Markup:
    paths = ("task.landscape", "learner.group_size", "seed", *(path for path, _ in SLIDERS.values()))
    words = [(_titled(path), described_at(path).help) for path in paths]
    words += [(METRICS[name].title, METRICS[name].help) for name in CARDS]
    entries = (Markup(element("dt", title) + element("dd", help)) for title, help in words)
    return element("details", element("summary", element("h2", tr("Terms"))), element("dl", *entries))
