// The sweep of bench_sweep.py as a plain loop: GRPO on the single peak, one number at a time.
//
//   node benchmarks/sweep.js '{"betas": [0, 0.1], "seeds": 64, "updates": 200, ...}'
//
// The generator is its own (mulberry32), so the runs are others than ours and their medians agree within the spread of
// the seeds. After every update the exact KL and the expected reward are computed, as the sweep does.
"use strict";

function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function logSoftmax(logits, out) {
  let highest = -Infinity, sum = 0;
  for (let j = 0; j < logits.length; j++) if (logits[j] > highest) highest = logits[j];
  for (let j = 0; j < logits.length; j++) sum += Math.exp(logits[j] - highest);
  const total = Math.log(sum) + highest;
  for (let j = 0; j < logits.length; j++) out[j] = logits[j] - total;
}

function choose(prob, u) {
  let cumulative = 0;
  for (let j = 0; j < prob.length; j++) {
    cumulative += prob[j];
    if (u < cumulative) return j;
  }
  return prob.length - 1;
}

function train(beta, seed, s, rewards, kl, reward) {
  const n = s.actions, reference = -Math.log(n), uniform = generator(seed);
  const logits = new Float64Array(n), old = new Float64Array(n), now = new Float64Array(n);
  const prob = new Float64Array(n), change = new Float64Array(n);
  const actions = new Int32Array(s.group), scores = new Float64Array(s.group);
  for (let step = 0; step < s.updates; step++) {
    logSoftmax(logits, old);
    for (let j = 0; j < n; j++) prob[j] = Math.exp(old[j]);
    let mean = 0;
    for (let i = 0; i < s.group; i++) {
      actions[i] = choose(prob, uniform());
      scores[i] = rewards[actions[i]];
      mean += scores[i] / s.group;
    }
    let variance = 0;
    for (let i = 0; i < s.group; i++) variance += (scores[i] - mean) ** 2 / (s.group - 1);
    const std = Math.sqrt(variance);
    for (let pass = 0; pass < s.mu; pass++) {
      logSoftmax(logits, now);
      for (let j = 0; j < n; j++) prob[j] = Math.exp(now[j]);
      change.fill(0);
      for (let i = 0; i < s.group; i++) {
        const a = actions[i], advantage = std > 1e-12 ? (scores[i] - mean) / (std + s.std_epsilon) : 0;
        const ratio = Math.exp(now[a] - old[a]);
        const stopped = advantage > 0 ? ratio > 1 + s.clip_high : ratio < 1 - s.clip_low;
        const push = stopped ? 0 : -ratio * advantage;
        const slope = (push - beta * (Math.exp(reference - now[a]) - 1)) / s.group;
        for (let j = 0; j < n; j++) change[j] += slope * ((j === a ? 1 : 0) - prob[j]);
      }
      for (let j = 0; j < n; j++) logits[j] -= s.rate * change[j];
    }
    logSoftmax(logits, now);
    kl[step] = 0;
    reward[step] = 0;
    for (let j = 0; j < n; j++) {
      const p = Math.exp(now[j]);
      kl[step] += p * (now[j] - reference);
      reward[step] += p * rewards[j];
    }
  }
}

function sweep(s, first) {
  const rewards = Float64Array.from({ length: s.actions }, (_, a) =>
    Math.max(0, 1 - Math.abs(a + 1 - s.peak) / s.half_width));
  const kl = new Float64Array(s.updates), reward = new Float64Array(s.updates);
  return s.betas.map((beta) => {
    const last = [];
    for (let seed = 0; seed < s.seeds; seed++) {
      train(beta, first + seed, s, rewards, kl, reward);
      last.push([kl[s.updates - 1], reward[s.updates - 1]]);
    }
    return last;
  });
}

const settings = JSON.parse(process.argv[2]);
sweep(settings, 1000); // so that the compiler has seen it
const begin = process.hrtime.bigint();
const last = sweep(settings, 1);
const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
console.log(JSON.stringify({ seconds, last, version: process.version }));
