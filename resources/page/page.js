"use strict";
// The page's program: it opens, hides and says what was written beforehand. It computes no number.

async function unpacked(id) {
  const letters = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const find = (selector, within = document) => [...within.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);

// -- explanations: the same places, buttons and way back as in the window

function explanations(nodes) {
  const panel = byId("explanation"), trail = [];
  let opener = null;

  function name(door) {
    const node = nodes[door.dataset.number];
    door.title = `${node.name}: ${node.full}`;
    if (!door.dataset.levels) door.setAttribute("aria-label", node.said); // a token is called what it says
  }

  function show(text, id) {
    byId(id).textContent = text;
    byId(id).hidden = !text;
  }

  function input(entry) {
    const item = document.createElement("li");
    const known = typeof entry === "number";
    const [name, value] = known ? [nodes[entry].name, nodes[entry].value] : entry;
    const title = document.createElement(known ? "button" : "span");
    title.textContent = name;
    if (known) {
      title.type = "button";
      title.className = "door";
      title.addEventListener("click", () => open(entry));
    }
    const number = document.createElement("span");
    number.textContent = value;
    item.append(title, number);
    return item;
  }

  function draw() {
    const node = nodes[trail[trail.length - 1]];
    show(node.title, "explained-title");
    for (const id of ["formula", "values"]) {
      byId(id).innerHTML = node[id]; // MathML that was made of our own formulas; the policy runs no program in it
      byId(id).hidden = !node[id];
    }
    show(`= ${node.value} ${node.unit}`.trim(), "value");
    byId("value").title = node.full;
    show(node.verdict, "verdict");
    byId("verdict").className = node.agrees ? "" : "differs";
    for (const id of ["comparison", "note", "more", "source"]) show(node[id], id);
    byId("inputs").replaceChildren(...node.inputs.map(input));
    byId("inputs-title").hidden = !node.inputs.length;
    byId("back").hidden = trail.length < 2;
    for (const door of find(".door.asked")) door.classList.remove("asked");
    if (opener) opener.classList.add("asked");
    panel.hidden = false;
    panel.scrollTop = 0;
    byId("explained-title").focus();
  }

  function open(place) {
    trail.push(place);
    draw();
  }

  function close() {
    panel.hidden = true;
    trail.length = 0;
    if (opener) {
      opener.classList.remove("asked");
      opener.focus();
    }
  }

  for (const door of find("[data-number]")) name(door);
  document.addEventListener("click", (event) => {
    const door = event.target.closest("[data-number]");
    if (!door) return;
    opener = door;
    trail.length = 0;
    open(Number(door.dataset.number));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) close();
  });
  byId("close").addEventListener("click", close);
  byId("back").addEventListener("click", () => {
    trail.pop();
    draw();
  });
}

// -- an update: its stages, and what its tokens are tinted by

function stages(update) {
  const buttons = find(".stage", update);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      update.dataset.shown = button.dataset.stage;
      for (const one of buttons) one.setAttribute("aria-pressed", one === button);
    });
  }
}

function tints(tokens) {
  const choice = tokens.querySelector(".tint");
  if (!choice) return;
  choice.addEventListener("change", () => {
    for (const legend of find(".legend", tokens)) legend.hidden = legend.dataset.tint !== choice.value;
    for (const token of find("[data-levels]", tokens)) {
      const level = Number(token.dataset.levels.split(",")[choice.value]);
      const door = token.dataset.doors.split(",")[choice.value];
      token.className = `${door ? "door " : ""}token ${level > 0 ? "u" + level : level < 0 ? "d" + -level : ""}`;
      if (door) token.dataset.number = door;
      token.removeAttribute("title"); // it was of another number
    }
  });
}

// -- results of many runs: the slider stands at rows, and says the row it stands at

function sweep(section) {
  const slider = section.querySelector("input"), said = section.querySelector("output"), rows = find("tbody tr", section);
  function show() {
    rows.forEach((row, place) => row.classList.toggle("chosen", place === Number(slider.value)));
    said.textContent = rows[slider.value].dataset.said;
    slider.setAttribute("aria-valuetext", said.textContent);
  }
  slider.addEventListener("input", show);
  show();
}

// -- a lesson: what follows an open question, and the terms in it, wait for the answer

function verdict(answer, guess) {
  if (guess === null) return answer.skipped;
  if (!answer.right) return answer.texts[guess];
  const inside = ([low, high]) => low <= guess && guess <= high;
  return answer.texts[inside(answer.right) ? 0 : inside(answer.close) ? 1 : 2];
}

function lesson(answers) {
  const steps = find(".step, .result"), everything = byId("everything");
  if (!everything) return;
  const answered = new Set();

  function reveal() {
    let waiting = false;
    for (const step of steps) {
      const form = step.querySelector(".question");
      const open = form && !answered.has(form.dataset.question);
      step.hidden = waiting;
      for (const words of find(".words", step)) words.hidden = Boolean(open);
      waiting = waiting || Boolean(open);
    }
    for (const term of find(".term")) term.hidden = answered.size < Number(term.dataset.asked);
    everything.hidden = !waiting;
  }

  function answer(form, guess) {
    const key = form.dataset.question, said = answers[key];
    answered.add(key);
    form.querySelector(".verdict").textContent = `${verdict(said, guess)} ${said.lesson}`.trim();
    form.querySelector("fieldset").disabled = true;
    reveal();
  }

  for (const form of find(".question")) {
    const slider = form.querySelector("input[type=range]"), output = form.querySelector("output");
    const shown = () => {
      const value = Number(slider.value);
      output.textContent = slider.dataset.form === "percent" ? value.toLocaleString("en", { style: "percent" }) : String(Number(value.toPrecision(4)));
    };
    if (slider) {
      slider.addEventListener("input", shown);
      shown();
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      answer(form, Number(slider ? slider.value : form.querySelector("input:checked").value));
    });
    form.querySelector(".skip").addEventListener("click", () => answer(form, null));
  }
  everything.addEventListener("click", () => {
    for (const form of find(".question")) if (!answered.has(form.dataset.question)) answer(form, null);
  });
  reveal();
}

addEventListener("beforeprint", () => { for (const one of find("details")) one.open = true; });

find(".update").forEach(stages);
find(".tokens").forEach(tints);
find(".sweep").forEach(sweep);
Promise.all([unpacked("explained"), unpacked("questions")]).then(([nodes, answers]) => {
  explanations(nodes);
  lesson(answers);
  document.documentElement.dataset.ready = "yes";
});
