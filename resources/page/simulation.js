// The loop over updates, without a page: which of the recorded functions are called, with what, and in which order.

const column = (numbers) => array([1, numbers.length, 1], Float64Array.from(numbers));
const table = (numbers) => array([1, 1, numbers.length], Float64Array.from(numbers));
const row = (numbers) => array([numbers.length], Float64Array.from(numbers));
const one = (number) => array([1, 1, 1], Float64Array.of(number));
const reference = table(given.reference), actions = row(given.start.map((_, action) => action));
const decoded = {};

function uniforms(seed, step, count) {
  if (!decoded[seed]) {
    const text = given.uniforms[seed];
    decoded[seed] = new Float64Array(text.length / 9);
    for (let place = 0; place < text.length; place++) {
      const at = Math.floor(place / 9);
      decoded[seed][at] = decoded[seed][at] * 64 + given.digits.indexOf(text[place]);
    }
    for (let at = 0; at < decoded[seed].length; at++) decoded[seed][at] /= Math.pow(2, 53);
  }
  const [updates, numbers] = given.block, first = Math.floor(step / updates) * numbers + (step % updates) * count;
  return column(decoded[seed].subarray(first, first + count));
}

const call = (kind, key, inputs) => functions[chosen[kind][key]](inputs);
const measure = (logits, landscape) => call("measured", "", { logits, reference, paid: row(given.rewards[landscape]) });

function start() {
  const zero = table(given.start.map(() => 0));
  return { step: 0, logits: table(given.start), first: zero, second: zero, steps: one(0) };
}

// The state after the next update. `choice` has algorithm, size, passes, optimizer, landscape, seed, beta, epsilon, rate.
function updated(state, choice) {
  const key = `${choice.algorithm} ${choice.size}`, paid = row(given.rewards[choice.landscape]), shared = { reference, actions };
  for (const name of ["beta", "epsilon", "rate"]) shared[name] = one(choice[name]);
  const draw = { uniforms: uniforms(choice.seed, state.step + 1, choice.size), paid, logits: state.logits };
  const batch = call("sampled", key, Object.assign({}, shared, draw)), passes = [];
  let after = state;
  for (let pass = 0; pass < choice.passes; pass++) {
    passes.push(call("passed", key, Object.assign({}, shared, batch, { logits: after.logits })));
    after = call("moved", choice.optimizer, Object.assign({}, shared, after, { change: passes[pass].change }));
  }
  after.step = state.step + 1;
  return { state: after, batch, passes, policy: measure(after.logits, choice.landscape) };
}

// The numbers of the cards after an update.
function cards(update) {
  const first = update.passes[0], last = update.passes[update.passes.length - 1], number = (x) => x.data[0];
  return {
    reward: number(update.policy.reward), reward_mean: number(update.batch.reward_mean), reward_std: number(update.batch.reward_std), kl: number(update.policy.kl),
    entropy: number(update.policy.entropy), max_prob: number(update.policy.max_prob), loss: number(first.loss),
    grad_norm: number(first.grad_norm), clip_fraction: number(last.clip_fraction),
  };
}
