// Draws the charts, and links the points of the frontier with their rates.
(() => {
  "use strict";
  const { config, specs } = JSON.parse(document.getElementById("charts").textContent);
  const views = {};
  // "ast": expressions are interpreted, not compiled, so that the page needs no right to make code.
  const options = {
    mode: "vega-lite", config, actions: false, renderer: "svg", ast: true,
    tooltip: { theme: "fairgrad" },
  };

  const draw = async (id) => {
    const place = document.getElementById(id);
    const result = await window.vegaEmbed(place, specs[id], options);
    views[id] = result.view;
  };

  const show = (point) => {
    const list = document.getElementById("point");
    list.value = String(point);
    for (const id of ["frontier", "frontier-rates"]) {
      if (views[id]) views[id].signal("shown", point).runAsync();
    }
    const chosen = list.options[list.selectedIndex];
    document.getElementById("point-said").textContent = "Shown: " + chosen.textContent;
  };

  const connect = () => {
    if (!views.frontier) return;
    views.frontier.addEventListener("click", (_event, item) => {
      if (item && item.datum && Number.isInteger(item.datum.point)) show(item.datum.point);
    });
    document.getElementById("point").addEventListener("change", (event) => {
      show(Number(event.target.value));
    });
  };

  const say = (state) => {
    document.documentElement.dataset.charts = state;
  };
  Promise.all(Object.keys(specs).map(draw))
    .then(connect)
    .then(() => say("ready"))
    .catch((error) => {
      say("failed");
      throw error;
    });
})();
