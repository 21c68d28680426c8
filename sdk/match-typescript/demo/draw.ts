// What is seen of the game.

import type { Player } from "./player.js";
import { FIELD, SIZE, type Square, WALLS } from "./tag.js";

/** Of the way to where a square is, so much is left after this time: corrections are smooth, and so is the time between two ticks. */
const HALF_MS = 25;

export class Drawing {
  readonly #context: CanvasRenderingContext2D;
  #shown: { x: number; y: number }[] = [];
  #at = 0;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.#context = canvas.getContext("2d")!;
  }

  /** Where a pointer is in the field. */
  at(event: PointerEvent): { x: number; y: number } {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return { x: ((event.clientX - left) / width) * FIELD.width, y: ((event.clientY - top) / height) * FIELD.height };
  }

  draw(player: Player, now: number, showsConfirmed: boolean): void {
    const { confirmed, predicted, seat } = player;
    if (!confirmed) return;
    const context = this.#context;
    const scale = Math.max(1, Math.round((this.canvas.clientWidth * devicePixelRatio) / FIELD.width * 4) / 4);
    if (this.canvas.width !== FIELD.width * scale) [this.canvas.width, this.canvas.height] = [FIELD.width * scale, FIELD.height * scale];
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(this.canvas);
    const color = (name: string) => style.getPropertyValue(name);
    context.fillStyle = color("--field");
    context.fillRect(0, 0, FIELD.width, FIELD.height);
    context.fillStyle = color("--wall");
    for (const { x, y, width, height } of WALLS) context.fillRect(x, y, width, height);
    const left = 0.5 ** ((now - this.#at) / HALF_MS);
    this.#at = now;
    for (const [at, goal] of (predicted ?? confirmed).squares.entries()) {
      const shown = this.#shown[at] ?? goal;
      this.#shown[at] = { x: goal.x + (shown.x - goal.x) * left, y: goal.y + (shown.y - goal.y) * left };
      this.#square(this.#shown[at], color(at === seat ? "--own" : "--other"), at === confirmed.it ? color("--it") : undefined);
      this.#label(this.#shown[at], at === seat ? "you" : "other", color("--line"));
      if (showsConfirmed) this.#outline(confirmed.squares[at]!, color("--line"));
    }
  }

  #square({ x, y }: { x: number; y: number }, color: string, ring: string | undefined): void {
    const context = this.#context;
    if (ring) {
      context.strokeStyle = ring;
      context.lineWidth = 6;
      context.strokeRect(x - 3, y - 3, SIZE + 6, SIZE + 6);
    }
    context.fillStyle = color;
    context.fillRect(x, y, SIZE, SIZE);
  }

  /** Above the square, or below it at the upper edge; as large on a small screen as on a large one. */
  #label({ x, y }: { x: number; y: number }, text: string, color: string): void {
    const context = this.#context;
    const size = (13 * FIELD.width) / Math.max(this.canvas.clientWidth, 1);
    context.fillStyle = color;
    context.font = `${size}px system-ui, sans-serif`;
    context.textAlign = "center";
    const half = context.measureText(text).width / 2 + 2;
    const middle = Math.min(Math.max(x + SIZE / 2, half), FIELD.width - half);
    context.fillText(text, middle, y > 2 * size ? y - size / 2 : y + SIZE + 1.4 * size);
  }

  #outline({ x, y }: Square, color: string): void {
    const context = this.#context;
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.setLineDash([4, 3]);
    context.strokeRect(x, y, SIZE, SIZE);
    context.setLineDash([]);
  }
}
