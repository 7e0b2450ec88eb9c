export const chord = (text) => {
  throw new Error('Write the function chord');
};

export const clashes = (bindings) => {
  throw new Error('Write the function clashes');
};
