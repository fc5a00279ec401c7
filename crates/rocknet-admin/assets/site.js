// Form of a website. The server checks it while it is filled in, and renders every problem; this script shows them
// without loading the page again. Without this script, the browser sends the form itself.

import { send } from "./server.js";
import { failed } from "./dashboard.js";
import { morph } from "./morph.js";

const CHECK_AFTER_MS = 500;
const form = document.getElementById("website");
let [timer, round, changed] = [undefined, 0, false];

/** Shows the fields that the choices use. The page names them. */
function showUsed() {
  for (const field of form.querySelectorAll("[data-choice]")) {
    const chosen = form.elements[field.dataset.choice]?.value;
    field.hidden = !field.dataset.shown.split(" ").includes(chosen);
  }
}

/** Takes the problems of a page that the server has rendered. */
function take(page) {
  const fresh = page.getElementById("website");
  if (!fresh) return failed({ message: page.querySelector(".state p")?.textContent ?? "The website cannot be edited." });
  for (const found of fresh.querySelectorAll(".problem")) {
    const present = document.getElementById(found.id);
    if (!present) continue;
    morph(present, found);
    const input = document.getElementById(found.id.replace("-problem", ""));
    found.querySelector(".bad") ? input?.setAttribute("aria-invalid", "true") : input?.removeAttribute("aria-invalid");
  }
  morph(document.getElementById("findings"), fresh.querySelector("#findings"));
  form.elements.revision.value = fresh.elements.revision.value;
}

/** Sends the form. Returns the response; undefined if a later check has begun. */
async function post(instruction) {
  const own = ++round;
  const fields = new URLSearchParams(new FormData(form));
  fields.set("do", instruction);
  const response = await send(location.pathname + location.search, { method: "POST", body: fields });
  if (new URL(response.url).pathname === "/login") return location.assign("/login");
  if (response.redirected) return response;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (own === round) take(page);
  return own === round ? response : undefined;
}

form.addEventListener("input", () => {
  changed = true;
  showUsed();
  clearTimeout(timer);
  // A problem of the connection is shown by the page.
  timer = setTimeout(() => post("check").catch(() => {}), CHECK_AFTER_MS);
});
form.addEventListener("reset", () =>
  // The fields have their first texts after this event.
  setTimeout(() => {
    changed = false;
    showUsed();
    post("check").catch(() => {});
  }),
);
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (form.ariaBusy === "true") return;
  clearTimeout(timer);
  form.ariaBusy = "true";
  try {
    const response = await post("save");
    if (response?.redirected) {
      changed = false;
      return location.assign(response.url);
    }
    (form.querySelector("[aria-invalid]") ?? document.getElementById("main")).focus();
  } catch (problem) {
    failed(problem);
  } finally {
    form.ariaBusy = "false";
  }
});
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s") event.preventDefault(), form.requestSubmit();
});
// Only a website that exists has a revision, and changes that could be lost.
addEventListener("beforeunload", (event) => changed && form.elements.revision.value && event.preventDefault());
for (const found of form.querySelectorAll(".problem:has(.bad)"))
  document.getElementById(found.id.replace("-problem", ""))?.setAttribute("aria-invalid", "true");
form.dataset.ready = "";
showUsed();
