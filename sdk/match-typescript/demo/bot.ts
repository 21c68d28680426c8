// What the bot does: it runs after the other on the shortest way round the walls, or to where that way is longest.

import { DOWN, FIELD, type Game, LEFT, RIGHT, SIZE, type Square, UP, isFree, step } from "./tag.js";

/** Ways are searched from point to point, this far apart. */
const STEP = 20;
const [COLUMNS, ROWS] = [Math.floor((FIELD.width - SIZE) / STEP) + 1, Math.floor((FIELD.height - SIZE) / STEP) + 1];
const WAYS = [0, UP, DOWN, LEFT, RIGHT, UP | LEFT, UP | RIGHT, DOWN | LEFT, DOWN | RIGHT];
/** It looks so many ticks ahead. */
const AHEAD = 5;

/** The points around a place, as indices; those that are free. */
function around({ x, y }: { x: number; y: number }): number[] {
  const [column, row] = [Math.floor(x / STEP), Math.floor(y / STEP)];
  const corners = [[column, row], [column + 1, row], [column, row + 1], [column + 1, row + 1]] as const;
  return corners.filter(([c, r]) => c < COLUMNS && r < ROWS && isFree(c * STEP, r * STEP)).map(([c, r]) => r * COLUMNS + c);
}

/** How far it is to a place from each point, in steps. */
function distances(to: Square): number[] {
  const far = new Array<number>(COLUMNS * ROWS).fill(Number.POSITIVE_INFINITY);
  const open = around(to);
  for (const point of open) far[point] = 0;
  for (let next = 0; next < open.length; next++) {
    const point = open[next]!;
    const [column, row] = [point % COLUMNS, Math.floor(point / COLUMNS)];
    for (const [c, r] of [[column - 1, row], [column + 1, row], [column, row - 1], [column, row + 1]] as const) {
      const other = r * COLUMNS + c;
      if (c < 0 || r < 0 || c >= COLUMNS || r >= ROWS || far[other]! <= far[point]! + 1 || !isFree(c * STEP, r * STEP)) continue;
      far[other] = far[point]! + 1;
      open.push(other);
    }
  }
  return far;
}

/** What a seat wants, if a bot has it. */
export function bot(game: Game, seat: number): number {
  const other = game.squares[1 - seat]!;
  const far = distances(other);
  const chases = game.it === seat;
  const value = (way: number) => {
    let then = game;
    for (let ahead = 0; ahead < AHEAD; ahead++) then = step({ ...then, it: game.it, stands: 0 }, seat === 0 ? [way, 0] : [0, way]);
    const square = then.squares[seat]!;
    const steps = Math.min(...around(square).map((point) => far[point]!));
    const apart = Math.hypot(square.x - other.x, square.y - other.y) / STEP;
    return chases ? -steps - apart / 4 : steps + apart / 4;
  };
  const values = WAYS.map(value);
  return WAYS[values.indexOf(Math.max(...values))]!;
}
