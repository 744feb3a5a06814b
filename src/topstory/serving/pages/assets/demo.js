// The live demo: signs in with the key behind the #, and sets how many visitors come.

import { $ } from "./dom.js";

const key = decodeURIComponent(location.hash.slice(1));
if (key) {
  history.replaceState(null, "", "/demo");
  await fetch("/studio/session", { method: "POST", headers: { Authorization: `Bearer ${key}` } });
}
$("#studio").src = "/studio";

const buttons = [...document.querySelectorAll("[data-rate]")];
const show = (rate) => buttons.forEach((button) => button.setAttribute("aria-pressed", Number(button.dataset.rate) === rate));
for (const button of buttons) {
  button.addEventListener("click", async () => {
    const answer = await fetch(`/demo/rate?rate=${button.dataset.rate}`, { method: "POST", headers: { "X-Topstory-Studio": "1" } });
    if (answer.ok) show((await answer.json()).rate);
  });
}
