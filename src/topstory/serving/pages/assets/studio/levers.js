// Levers: pin, boost and limit an article, and what that costs.

import { $, h, say } from "../dom.js";
import { ask, facts } from "./shell.js";

let row = null;
let changed = () => {};

const clicks = (cost) => {
  if (cost === null) return "What it costs is known once visitors have come.";
  const amount = Math.abs(cost) < 0.05 ? "nothing" : `about ${cost.toFixed(1)} clicks`;
  return `Costs ${amount} in 1,000 visits.`;
};

// What is set, beside the article's state.
export function leverTags(levers) {
  if (!levers) return null;
  const told = [];
  if (levers.exhausted) told.push("had all its shows");
  else if (levers.pinned) told.push(levers.pin.slot === 1 ? "pinned" : `pinned to slot ${levers.pin.slot}`);
  if (levers.boost !== 1) told.push(`boosted ×${levers.boost}`);
  if (levers.max_shows !== null && !levers.exhausted) told.push(`at most ${levers.max_shows} shows`);
  if (levers.max_share < 1) told.push(`at most ${Math.round(levers.max_share * 100)} %`);
  return h("div", { class: "levers" }, told.map((words) => h("span", { class: "tag lever" }, words)),
    h("div", { class: "i" }, clicks(levers.cost)));
}

const path = () => `/v1/pools/${encodeURIComponent(facts.pool)}/levers/${encodeURIComponent(row.id)}`;
const local = (when) => (when ? new Date(new Date(when) - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 16) : "");

function wanted() {
  const fields = $("#levers-form").elements;
  const until = fields.until.value ? new Date(fields.until.value).toISOString() : null;
  return {
    pin: fields.pin.checked ? { slot: Number(fields.slot.value) || 1, until } : null,
    boost: Number(fields.boost.value) || 1,
    max_shows: fields.shows.value === "" ? null : Number(fields.shows.value),
    max_share: (Number(fields.share.value) || 100) / 100,
  };
}

let asked = 0;
async function tell() {
  const number = ++asked;
  try {
    const found = await ask(path(), { method: "POST", body: wanted() });
    if (number === asked) say($("#levers-cost"), clicks(found.cost));
  } catch (error) {
    if (number === asked) say($("#levers-cost"), error.message);
  }
}

async function put(body) {
  say($("#levers-problem"), "");
  try {
    await ask(path(), { method: "PUT", body });
    $("#levers").close();
    await changed();
  } catch (error) {
    say($("#levers-problem"), error.message);
  }
}

export function openLevers(article, then) {
  [row, changed] = [article, then];
  const form = $("#levers-form");
  form.reset();
  say($("#levers-name"), row.title || row.id);
  say($("#levers-problem"), "");
  const now = row.levers;
  if (now) {
    form.elements.pin.checked = now.pin !== null;
    form.elements.slot.value = now.pin?.slot ?? 1;
    form.elements.until.value = local(now.pin?.until);
    form.elements.boost.value = now.boost;
    form.elements.shows.value = now.max_shows ?? "";
    form.elements.share.value = Math.round(now.max_share * 100);
  }
  $("#levers").showModal();
  tell();
}

if (facts.can_edit) {
  let typing;
  $("#levers-close").addEventListener("click", () => $("#levers").close());
  $("#levers-undo").addEventListener("click", () => put({}));
  $("#levers-form").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(tell, 200); });
  $("#levers-form").addEventListener("submit", (event) => { event.preventDefault(); put(wanted()); });
}
