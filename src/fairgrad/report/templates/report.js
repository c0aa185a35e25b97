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
    // The first chart has more room on a desktop than on a phone.
    if (id === "compared" && window.innerWidth >= 900) specs[id].height *= 1.5;
    const result = await window.vegaEmbed(place, specs[id], options);
    views[id] = result.view;
  };

  // A chart fills its place, so one in a closed part of the page is drawn when that is opened.
  const isShown = (id) => !document.getElementById(id).closest("details:not([open])");
  const drawWhenOpened = (part) => part.addEventListener("toggle", () => {
    for (const place of part.querySelectorAll(".plot")) {
      if (!views[place.id] && isShown(place.id)) draw(place.id);
    }
  });

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

  // Tables with many rows can be sorted by each column and filtered by their first one.
  const MANY = 12;
  const text = (row, column) => (row.cells[column] ? row.cells[column].textContent : "").trim();
  const isLast = (row) => row.classList.contains("all") || text(row, 0) === "overall";
  const figure = (cell) => {
    const now = cell.includes("→") ? cell.slice(cell.indexOf("→") + 1) : cell;
    const found = now.replace(/,/g, "").match(/[-+]?\d+(\.\d+)?/);
    return found ? Number(found[0]) : NaN;
  };

  const sortBy = (table, column, down) => {
    const rows = [...table.tBodies[0].rows];
    const key = new Map(rows.map((row) => [row, column === 0 ? NaN : figure(text(row, column))]));
    rows.sort((one, two) => {
      if (isLast(one) !== isLast(two)) return isLast(one) ? 1 : -1;
      const [a, b] = [key.get(one), key.get(two)];
      if (Number.isNaN(a) && Number.isNaN(b)) {
        const order = text(one, column).localeCompare(text(two, column), undefined, { numeric: true });
        return down ? -order : order;
      }
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
      return down ? b - a : a - b;
    });
    table.tBodies[0].append(...rows);
  };

  const makeSortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!head.textContent.trim() || head.classList.contains("wide")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = column === 0
          ? head.getAttribute("aria-sort") === "ascending"
          : head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortBy(table, column, down);
      });
    });
  };

  const makeFilterable = (table, number) => {
    const rows = [...table.tBodies[0].rows].filter((row) => !isLast(row));
    const tools = document.createElement("div");
    tools.className = "tools";
    const label = document.createElement("label");
    label.htmlFor = `filter-${number}`;
    label.textContent = "Filter by name";
    const input = document.createElement("input");
    input.type = "search";
    input.id = label.htmlFor;
    const said = document.createElement("output");
    said.htmlFor.add(input.id);
    tools.append(label, input, said);
    table.closest(".scroll").classList.add("many");
    table.closest(".scroll").before(tools);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !text(row, 0).toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      said.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
    });
  };

  [...document.querySelectorAll("main .scroll > table")].forEach((table, number) => {
    if (table.tBodies[0].rows.length <= MANY) return;
    makeFilterable(table, number);
    if (!("fixed" in table.dataset)) makeSortable(table);
  });

  const say = (state) => {
    document.documentElement.dataset.charts = state;
  };
  document.querySelectorAll("details.more").forEach(drawWhenOpened);
  Promise.all(Object.keys(specs).filter(isShown).map(draw))
    .then(connect)
    .then(() => say("ready"))
    .catch((error) => {
      say("failed");
      throw error;
    });
})();
