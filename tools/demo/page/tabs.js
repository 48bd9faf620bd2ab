// Tabs: buttons of which each shows a panel of the page. Arrow keys go from one to the next.

export class Tabs extends EventTarget {
  #tabs;

  // `list` has the buttons; `aria-controls` names the panel of each. That of the address's fragment
  // is shown first. A change is an event 'show'.
  constructor(list) {
    super();
    this.#tabs = [...list.querySelectorAll('[role="tab"]')];
    for (const tab of this.#tabs) tab.addEventListener('click', () => this.#show(tab));
    list.addEventListener('keydown', (event) => this.#press(event));
    addEventListener('hashchange', () => this.#show(this.#ofAddress()));
    this.#show(this.#ofAddress());
  }

  // The id of the panel that is shown.
  get shown() {
    return this.#tabs.find((tab) => tab.ariaSelected === 'true').getAttribute('aria-controls');
  }

  #ofAddress() {
    const isNamed = (tab) => `#${tab.getAttribute('aria-controls')}` === location.hash;
    return this.#tabs.find(isNamed) ?? this.#tabs[0];
  }

  #show(shown) {
    for (const tab of this.#tabs) {
      tab.ariaSelected = String(tab === shown);
      tab.tabIndex = tab === shown ? 0 : -1;
      document.getElementById(tab.getAttribute('aria-controls')).hidden = tab !== shown;
    }
    // Without a new entry in the browser's history.
    history.replaceState(null, '', `#${this.shown}`);
    this.dispatchEvent(new Event('show'));
  }

  #press(event) {
    const count = this.#tabs.length;
    const at = this.#tabs.indexOf(event.target);
    const next = {
      ArrowLeft: (at + count - 1) % count, ArrowRight: (at + 1) % count, Home: 0, End: count - 1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.#show(this.#tabs[next]);
    this.#tabs[next].focus();
  }
}
