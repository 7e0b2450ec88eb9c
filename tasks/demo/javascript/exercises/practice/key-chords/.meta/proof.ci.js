const ORDER = ['Ctrl', 'Alt', 'Shift', 'Meta'];

const MODIFIERS = new Map([
  ['ctrl', 'Ctrl'],
  ['control', 'Ctrl'],
  ['alt', 'Alt'],
  ['option', 'Alt'],
  ['shift', 'Shift'],
  ['meta', 'Meta'],
  ['cmd', 'Meta'],
  ['command', 'Meta'],
]);

export const chord = (text) => {
  const parts = text.split('+').map((part) => part.trim().toLowerCase());
  const keys = parts.filter((part) => !MODIFIERS.has(part));
  if (parts.includes('')) {
    throw new Error(`empty part in '${text}'`);
  }
  if (keys.length === 0) {
    throw new Error(`no key in '${text}'`);
  }
  if (keys.length > 1) {
    throw new Error(`more than one key in '${text}'`);
  }
  const held = new Set(parts.map((part) => MODIFIERS.get(part)));
  const key = keys[0].charAt(0).toUpperCase() + keys[0].slice(1);
  return [...ORDER.filter((name) => held.has(name)), key].join('+');
};

export const clashes = (bindings) => {
  const users = new Map();
  for (const [action, text] of Object.entries(bindings)) {
    const name = chord(text);
    users.set(name, [...(users.get(name) ?? []), action]);
  }
  return [...users.keys()]
    .filter((name) => users.get(name).length > 1)
    .sort()
    .map((name) => ({ chord: name, actions: users.get(name) }));
};
