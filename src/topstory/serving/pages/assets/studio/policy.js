// Policy: what decides now.

import { $, count, duration } from "../dom.js";
import { every, factList, get } from "./shell.js";

every(3, async () => {
  const state = await get("/studio/data/policy");
  $("#policy").replaceChildren(factList([
    ["Model", state.model], ["Explorer", state.explorer],
    ...Object.entries(state.parameters).map(([name, value]) => [name, String(value)]),
    ["Learned from", `${count(state.trials)} visits`], ["Payoffs", count(state.payoffs)],
    ["Learned last", `${duration(state.learned)} ago`], ["Drift by rounding", state.drift === null ? "not measured yet" : state.drift.toExponential(1)], ["Last record", count(state.record)]]));
});
