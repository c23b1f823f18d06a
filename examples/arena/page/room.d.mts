/** What `room.mjs` offers, for code in TypeScript. */

export interface RoomOptions {
  readonly url: string
  readonly namespace: string
  readonly id: string
  /** `get` gives a good token, and when to ask for the next one. */
  readonly person: { get(): Promise<{ token: string; renewInMs: number }>; forget(): void }
  // biome-ignore lint/suspicious/noExplicitAny: what a state is like is known to whoever joins.
  onChange(shared: any, own: any): void
  onMessage(messageType: string, data: unknown): void
  onStatus(status: string, userId: string | null): void
  onJoined(isResumed: boolean): void
}

export function joinRoom(options: RoomOptions): {
  act(actionType: string, payload?: unknown): Promise<unknown>
  leave(): void
}
