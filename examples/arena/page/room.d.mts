/** Types of `room.mjs`. */

export interface RoomOptions {
  readonly url: string
  readonly namespace: string
  readonly id: string
  /** `get` returns a valid token and when to renew it. */
  readonly user: { get(): Promise<{ token: string; renewInMs: number }>; forget(): void }
  // biome-ignore lint/suspicious/noExplicitAny: the type of the state depends on the room.
  onChange(shared: any, own: any): void
  onMessage(messageType: string, data: unknown): void
  onStatus(status: string, userId: string | null): void
  onJoined(isResumed: boolean): void
}

export function joinRoom(options: RoomOptions): {
  act(actionType: string, payload?: unknown): Promise<unknown>
  leave(): void
}
