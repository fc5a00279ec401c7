// Form that adds a website. Fields are checked by the server when they are left.

import { call } from "./server.js";
import { element, failed, saved } from "./dashboard.js";

const form = document.getElementById("website");
const field = (id) => document.getElementById(id);
const value = (id) => field(id)?.value.trim() ?? "";
const kind = () => form.elements.kind?.value ?? "files";
// A JSON string is a string of TOML too.
const quoted = JSON.stringify;
let names = [];
call("GET", "/api/sites").then((sites) => (names = sites.map((site) => site.name))).catch(() => {});

function edits() {
  const name = value("name");
  const set = (key, text) => ({ op: "set", path: ["site", name, key], value: text });
  if (kind() === "proxy") return [set("proxy", quoted(value("address")))];
  const add = [{ op: "add_site", name, root: value("folder") }];
  return kind() === "php" ? [...add, set("php", quoted("auto"))] : add;
}

/** Shows a problem beside its field. */
function problem(id, text) {
  const input = field(id);
  if (!input) return;
  field(`${id}-problem`).textContent = text ? `✖ ${text}` : "";
  text ? input.setAttribute("aria-invalid", "true") : input.removeAttribute("aria-invalid");
}

const inputs = () => [...form.querySelectorAll("input:not([type=radio])")].filter((input) => !input.closest("[hidden]"));

/** Returns the field that a finding of the server is about. */
const place = ({ key: [, site, name] = [] }) => (site === value("name") ? ({ root: "folder", proxy: "address" }[name] ?? "name") : undefined);

/** Checks the form as far as it is filled in. Returns true if the server would accept it. */
async function check(isComplete) {
  const ids = inputs().map((input) => input.id);
  let good = true;
  for (const id of ids) {
    const isMissing = field(id).required && !value(id) && (isComplete || field(id).dataset.left);
    problem(id, isMissing ? "Fill in this field." : "");
    if (field(id).required && !value(id)) good = false;
  }
  if (names.includes(value("name"))) {
    problem("name", "There is a website with this name already.");
    good = false;
  }
  field("findings").replaceChildren();
  if (!good) return false;
  const wanted = edits();
  form.ariaBusy = "true";
  try {
    const checked = await call("POST", "/api/config/check-edits", { edits: wanted });
    const before = await known();
    for (const finding of checked.findings.filter((one) => !before.has(one.message))) {
      const text = [finding.message, finding.help].filter(Boolean).join(": ");
      const id = finding.is_error && place(finding);
      if (id) problem(id, text);
      else field("findings").append(element("p", { className: `notice ${finding.is_error ? "bad" : "fair"}` }, text));
    }
    return checked.is_valid;
  } catch (error) {
    if (error.status === 422) problem("name", error.message);
    else failed(error);
    return false;
  } finally {
    form.ariaBusy = "false";
  }
}

// Findings that the configuration has without the edits are not about this form.
let before;
const known = () =>
  (before ??= call("POST", "/api/config/check-edits", { edits: [] })
    .then((checked) => new Set(checked.findings.map((one) => one.message)))
    .catch(() => new Set()));

/** Suggests a name from the folder: its last part, below `localhost` if it has no dot. */
function suggest() {
  const name = field("name");
  if (name.dataset.typed) return;
  const last = value("folder").replace(/\/+$/, "").split("/").pop().toLowerCase().replace(/[^a-z0-9.-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
  name.value = last && (last.includes(".") ? last : `${last}.localhost`);
}

function switchKind() {
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind());
}

form.addEventListener("input", ({ target }) => {
  if (target.id === "name") target.dataset.typed = target.value;
  if (target.id === "folder") suggest();
  if (target.name === "kind") switchKind();
});
form.addEventListener("focusout", ({ target }) => {
  if (!target.matches("input:not([type=radio])")) return;
  target.dataset.left = true;
  check(false);
});
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (form.ariaBusy === "true" && form.dataset.saving) return;
  if (!(await check(true))) return form.querySelector("[aria-invalid]")?.focus();
  const wanted = edits();
  form.dataset.saving = "1";
  try {
    const reply = await call("POST", "/api/config/edit", { edits: wanted });
    const name = value("name");
    saved(`${name} is served.`, reply);
    names.push(name), form.reset(), delete field("name").dataset.typed, switchKind();
    field("main").focus();
  } catch (error) {
    failed(error);
  } finally {
    delete form.dataset.saving;
  }
});
// Before this script has run, the method `dialog` keeps the browser from sending the form, which would lose the input.
form.dataset.ready = "";
switchKind();
