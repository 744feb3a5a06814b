// The front page: featuring a story, opening it, and why it was chosen.

import { $, h, say } from "./dom.js";
import { whyView } from "./why.js";

const module = $("#module");

if (module) {
  const decision = module.dataset.decision;
  const stories = [...document.querySelectorAll(".story")];
  const buttons = [...document.querySelectorAll("[data-feature]")];

  function feature(place) {
    for (const story of stories) {
      const shown = story.dataset.place === place;
      story.classList.toggle("shown", shown);
      story.inert = !shown;
    }
    for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.feature === place);
  }

  let resting;
  for (const button of buttons) {
    button.addEventListener("click", () => feature(button.dataset.feature));
    // A pointer that only passes by changes nothing.
    button.addEventListener("pointerenter", (event) => {
      if (event.pointerType === "mouse") resting = setTimeout(() => feature(button.dataset.feature), 120);
    });
    button.addEventListener("pointerleave", () => clearTimeout(resting));
  }

  async function opened(event) {
    const place = event.currentTarget.closest(".story").dataset.place;
    const leave = module.dataset.links === "yes" && event.currentTarget.getAttribute("href") !== "#main";
    if (place !== "1") {
      if (!leave) {
        event.preventDefault();
        say($("#note"), "Only the story that was chosen, F1, counts as a click.");
      }
      return;
    }
    if (leave) {
      // Sent even though the browser leaves the page.
      fetch(`/today/click?decision=${encodeURIComponent(decision)}`, { method: "POST", keepalive: true });
      return;
    }
    event.preventDefault();
    try {
      const answer = await fetch(`/today/click?decision=${encodeURIComponent(decision)}`, { method: "POST" });
      const body = await answer.json();
      if (!answer.ok) throw new Error(body.error.message);
      say($("#note"), body.repeated ? "This click was counted before: once for each visit." : "Your click was counted. The next visit knows about it.");
    } catch (error) {
      say($("#note"), `The click could not be counted: ${error.message}`);
    }
  }
  for (const link of document.querySelectorAll("[data-open]")) link.addEventListener("click", opened);

  const drawer = $("#why");
  $("#why-open").addEventListener("click", async () => {
    drawer.showModal();
    try {
      const answer = await fetch(`/today/why?decision=${encodeURIComponent(decision)}`);
      const body = await answer.json();
      if (!answer.ok) throw new Error(body.error.message);
      $("#why-body").replaceChildren(whyView(body));
    } catch (error) {
      $("#why-body").replaceChildren(h("p", { class: "problem" }, `The model could not be asked: ${error.message}`));
    }
  });
  $("#why-close").addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", (event) => event.target === drawer && drawer.close());
}
