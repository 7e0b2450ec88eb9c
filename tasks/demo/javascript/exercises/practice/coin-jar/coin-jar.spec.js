import { total } from './coin-jar';

describe('Coin Jar', () => {
  test('adds several coins', () => {
    expect(total([5, 10, 10])).toBe(25);
    expect(total([1, 2, 5, 100])).toBe(108);
  });

  test('a single coin is the total', () => {
    expect(total([50])).toBe(50);
  });

  test('an empty jar holds nothing', () => {
    expect(total([])).toBe(0);
  });

  test('leaves the array as it was', () => {
    const coins = [20, 5, 20];
    expect(total(coins)).toBe(45);
    expect(coins).toEqual([20, 5, 20]);
  });
});
