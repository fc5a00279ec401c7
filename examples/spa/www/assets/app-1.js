// Chooses what to show by the path alone, so that every address can be opened, reloaded and sent to a friend.
const HIGH_WATER_HOURS = 12.42;

const views = {
  "/": () => {
    const hours = (Date.now() / 3.6e6) % HIGH_WATER_HOURS;
    return ["Next high water in", `${(HIGH_WATER_HOURS - hours).toFixed(1)} h`];
  },
  "/tides/flood": () => ["Flood", "the water comes"],
  "/tides/ebb": () => ["Ebb", "the water goes"],
};

function show() {
  const [title, value] = (views[location.pathname] ?? (() => ["No such view", location.pathname]))();
  const heading = document.createElement("h1");
  heading.textContent = title;
  const output = document.createElement("output");
  output.textContent = value;
  document.querySelector("main").replaceChildren(heading, output);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || !(link.pathname in views) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.pathname);
  show();
});
addEventListener("popstate", show);
show();
