// The simulator's window: it shows the results of the loop over updates, and computes none of them.

const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

function shown(value) {
  const size = Math.abs(value), text = size && size < 0.0005 ? value.toExponential(1) : value.toFixed(3);
  return text.replace(/-/g, "\u2212");
}

function written(name, value) {
  if (words.shares.indexOf(name) >= 0) return `${Number((100 * value).toPrecision(3))}%`;
  return words.units[name] ? `${shown(value)} ${words.units[name]}` : shown(value);
}

function drawn(parent, name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
  parent.appendChild(made);
  return made;
}

function cells(row, texts) {
  texts.forEach((text, place) => {
    const cell = document.createElement(place ? "td" : "th");
    if (!place) cell.scope = "row";
    cell.textContent = text;
    row.appendChild(cell);
  });
}

function rows(id, lines) {
  const body = byId(id).querySelector("tbody");
  body.textContent = "";
  for (const line of lines) cells(body.appendChild(document.createElement("tr")), line);
}

// -- choices

const selects = ["algorithm", "landscape", "size", "optimizer", "seed"], sliders = ["passes", "beta", "epsilon", "rate"];
const values = {};
for (const name of sliders) values[name] = byId(name).dataset.values.split(" ").map(Number);

function chosen_now() {
  const choice = {};
  for (const name of selects) choice[name] = byId(name).value;
  for (const name of sliders) choice[name] = values[name][byId(name).value];
  choice.size = Number(choice.size);
  return choice;
}

function put(name, value) {
  if (value !== undefined) byId(name).value = values[name].indexOf(value);
  const text = String(values[name][byId(name).value]);
  byId(name).setAttribute("aria-valuetext", text);
  byId(`${name}-shown`).textContent = text;
}

// -- one run

let state, updates, policies;

function restart() {
  const choice = chosen_now(), policy = measure(start().logits, choice.landscape);
  state = start();
  updates = [];
  policies = [policy];
  draw();
}

function advance(count) {
  const choice = chosen_now();
  for (; count > 0 && state.step < given.updates; count--) {
    const update = updated(state, choice);
    state = update.state;
    updates.push(Object.assign(update, { choice, key: JSON.stringify(choice), cards: cards(update) }));
    policies.push(update.policy);
  }
  draw();
  say();
}

function say() {
  const policy = policies[policies.length - 1], best = Array.from(policy.prob.data).indexOf(policy.max_prob.data[0]);
  const at = { step: state.step, best: best + 1, prob: written("max_prob", policy.max_prob.data[0]) };
  byId("said").textContent = fill(words.said, Object.assign(at, { reward: shown(policy.reward.data[0]) }));
}

function draw() {
  const choice = chosen_now(), update = updates[updates.length - 1], policy = policies[policies.length - 1];
  const before = policies[Math.max(policies.length - 2, 0)], paid = given.rewards[choice.landscape];
  bars(Array.from(policy.prob.data), Array.from(before.prob.data), paid);
  byId("step-count").textContent = String(state.step);
  for (const name of words.cards) {
    const known = update ? update.cards[name] : policy[name] && policy[name].data[0];
    byId(`card-${name}`).textContent = known === undefined ? words.none : written(name, known);
  }
  for (const name of words.curves) {
    const series = updates.map((one) => one.cards[name]);
    curve(byId(name), [series]);
    mark(byId(name));
    const ends = { title: words.titles[name], last: series.length ? written(name, series[series.length - 1]) : words.none };
    byId(`caption-${name}`).textContent = fill(words.caption, Object.assign(ends, { step: state.step }));
  }
  byId("updates-done").textContent = fill(words.done, { step: state.step, last: given.updates });
  for (const id of ["step", "ten", "all"]) byId(id).disabled = state.step >= given.updates;
  const pass = byId("pass"), most = update ? update.passes.length : 0, at = Math.min(Number(pass.value) || most, most);
  pass.textContent = "";
  for (let n = 1; n <= most; n++) pass.appendChild(new Option(String(n), String(n), n === at, n === at));
  detail(update, Number(pass.value));
}

function bars(prob, before, paid) {
  const svg = byId("bars"), wide = 600 / prob.length, high = 150, y = (share) => high - share * (high - 8);
  svg.textContent = "";
  const top = Math.max(0.3, Math.max.apply(null, prob.concat(before))), most = Math.max.apply(null, paid);
  prob.forEach((share, place) => {
    const left = place * wide, bar = { x: left + 8, width: wide - 16, y: y(share / top), height: high - y(share / top), class: "bar up" };
    drawn(svg, "rect", bar);
    drawn(svg, "line", { x1: left + 3, x2: left + wide - 3, y1: y(before[place] / top), y2: y(before[place] / top), class: "old" });
    const level = y(Math.exp(given.reference[place]) / top);
    drawn(svg, "line", { x1: left, x2: left + wide, y1: level, y2: level, class: "reference" });
    drawn(svg, "circle", { cx: left + wide / 2, cy: y(paid[place] / most), r: 4, class: "paid" });
    drawn(svg, "text", { x: left + wide / 2, y: high + 18, "text-anchor": "middle" }).textContent = String(place + 1);
  });
  rows("actions", prob.map((share, place) => [place + 1, paid[place], share, before[place], Math.exp(given.reference[place])].map(
    (value, column) => column ? shown(value) : String(value))));
}

const x = (n) => (4 + 592 * n / (given.updates - 1)).toFixed(1);

function curve(svg, series) {
  svg.textContent = "";
  const all = [].concat.apply([], series), low = Math.min.apply(null, all), high = Math.max.apply(null, all);
  const y = (value) => (60 - 56 * (high > low ? (value - low) / (high - low) : 0.5)).toFixed(1);
  series.forEach((one, place) => {
    const points = one.map((value, n) => `${x(n)},${y(value)}`).join(" ");
    drawn(svg, "polyline", { points, class: `curve ${svg.dataset.classes.split(" ")[place]}` });
  });
}

function mark(svg) {
  updates.forEach((one, n) => {
    if (n && one.key !== updates[n - 1].key) drawn(svg, "line", { x1: x(n), x2: x(n), y1: 0, y2: 64, class: "here" });
  });
}

function detail(update, pass) {
  if (!update) return rows("detail", []);
  const { batch, choice } = update, at = update.passes[pass - 1], numbers = [];
  for (let row = 0; row < choice.size; row++) {
    const push = at.push.data[row];
    numbers.push([row + 1, batch.tokens.data[row] + 1].map(String).concat(
      [batch.rewards, batch.advantage, at.ratio].map((x) => shown(x.data[row])),
      at.clipped.data[row] ? words.yes : words.no, shown(at.divergence.data[row]), push > 0 ? `\u25bc ${shown(push)}` : push < 0 ? `\u25b2 ${shown(push)}` : shown(push)));
  }
  rows("detail", numbers);
  const group = { step: update.state.step, mean: shown(update.cards.reward_mean), std: shown(update.cards.reward_std) };
  byId("group").textContent = fill(words.group, Object.assign(group, { loss: shown(at.loss.data[0]), norm: shown(at.grad_norm.data[0]) }));
}

// -- three algorithms

function compare() {
  const now = chosen_now(), found = words.compared.map((algorithm) => {
    const own = Object.assign({}, now, { algorithm }, words.presets[algorithm]), series = [];
    let one = start(), last;
    while (one.step < given.updates) {
      last = updated(one, own);
      one = last.state;
      series.push(cards(last).reward);
    }
    return { algorithm, series, last: cards(last) };
  });
  curve(byId("compared-curves"), found.map((one) => one.series));
  rows("compared", found.map(({ algorithm, last }) => [algorithm].concat(["reward", "max_prob", "kl"].map((name) => written(name, last[name])))));
  byId("comparison").hidden = false;
  const ends = found.map(({ algorithm, last }) => fill(words.ended, { algorithm, reward: shown(last.reward) })).join("; ");
  byId("said").textContent = fill(words.compared_said, { ends, last: given.updates });
}

// -- what is pressed

for (const name of sliders) byId(name).addEventListener("input", () => put(name));
byId("algorithm").addEventListener("change", () => {
  const preset = words.presets[byId("algorithm").value];
  for (const name of Object.keys(preset)) put(name, preset[name]);
  byId("epsilon").disabled = words.unclipped.indexOf(byId("algorithm").value) >= 0;
});
for (const name of ["landscape", "seed"]) byId(name).addEventListener("change", () => { restart(); say(); });
byId("controls").addEventListener("submit", (event) => event.preventDefault());
for (const [id, count] of [["step", 1], ["ten", 10], ["all", given.updates]]) byId(id).addEventListener("click", () => advance(count));
byId("again").addEventListener("click", () => { restart(); say(); });
byId("compare").addEventListener("click", compare);
byId("pass").addEventListener("change", () => detail(updates[updates.length - 1], Number(byId("pass").value)));
for (const name of sliders) put(name);
restart();
document.documentElement.dataset.ready = "yes";
