export const total = (coins) => coins.reduce((sum, coin) => sum + coin, 0);
