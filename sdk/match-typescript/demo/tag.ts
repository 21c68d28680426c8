// The game: two squares, one of which is "it". The same inputs make the same game everywhere: there is nothing in it but whole numbers.

export const FIELD = { width: 640, height: 400 };
export const SIZE = 36;
/** Ticks of a game: a minute. */
export const TICKS = 1200;
export const UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8;
/** Where nobody can be. */
export const WALLS = [
  { x: 180, y: 90, width: 40, height: 150 },
  { x: 420, y: 160, width: 40, height: 150 },
];
/** Units per tick of who is "it", and of who runs; for so many ticks who was caught stands. */
const CHASING = 11, RUNNING = 10, CAUGHT = 20;

export interface Square {
  x: number;
  y: number;
  /** Ticks in which it was not "it". */
  score: number;
}

export interface Game {
  tick: number;
  /** Who is "it". */
  it: number;
  /** For so many more ticks it stands. */
  stands: number;
  squares: [Square, Square];
}

/** A new game; the seed says who is "it". */
export function begin(seed: bigint): Game {
  const y = (FIELD.height - SIZE) / 2;
  return { tick: 0, it: Number(seed & 1n), stands: CAUGHT, squares: [{ x: 60, y, score: 0 }, { x: FIELD.width - 60 - SIZE, y, score: 0 }] };
}

const overlap = (a: { x: number; y: number; width: number; height: number }, x: number, y: number) =>
  x < a.x + a.width && x + SIZE > a.x && y < a.y + a.height && y + SIZE > a.y;
export const isFree = (x: number, y: number) =>
  x >= 0 && y >= 0 && x <= FIELD.width - SIZE && y <= FIELD.height - SIZE && !WALLS.some((wall) => overlap(wall, x, y));

/** As far as it gets in one direction. */
function slide(square: Square, dx: number, dy: number): void {
  for (let left = Math.abs(dx + dy); left > 0; left--) {
    const [x, y] = [square.x + Math.sign(dx), square.y + Math.sign(dy)];
    if (!isFree(x, y)) return;
    [square.x, square.y] = [x, y];
  }
}

/** The game after another tick, with these inputs by seat. The game before is not changed. */
export function step(before: Game, inputs: readonly number[]): Game {
  const squares: [Square, Square] = [{ ...before.squares[0] }, { ...before.squares[1] }];
  const game = { ...before, tick: before.tick + 1, stands: Math.max(before.stands - 1, 0), squares };
  for (const [seat, square] of squares.entries()) {
    const isIt = seat === game.it;
    if (!isIt) square.score++;
    if (isIt && game.stands > 0) continue;
    const held = inputs[seat] ?? 0;
    const [dx, dy] = [Number((held & RIGHT) !== 0) - Number((held & LEFT) !== 0), Number((held & DOWN) !== 0) - Number((held & UP) !== 0)];
    const speed = isIt ? CHASING : RUNNING;
    const way = dx !== 0 && dy !== 0 ? Math.floor((speed * 7) / 10) : speed;
    slide(square, dx * way, 0);
    slide(square, 0, dy * way);
  }
  const [one, other] = squares;
  if (game.stands === 0 && overlap({ ...one, width: SIZE, height: SIZE }, other.x, other.y)) [game.it, game.stands] = [1 - game.it, CAUGHT];
  return game;
}

/** A hash of all that there is (FNV-1a). */
export function hash({ tick, it, stands, squares }: Game): number {
  const values = [tick, it, stands, ...squares.flatMap(({ x, y, score }) => [x, y, score])];
  return values.reduce((hash, value) => Math.imul(hash ^ value, 0x0100_0193) >>> 0, 0x811c_9dc5);
}

/** Who won: who was not "it" for longer. */
export function winner({ squares: [one, other] }: Game): number | undefined {
  return one.score === other.score ? undefined : Number(other.score > one.score);
}

