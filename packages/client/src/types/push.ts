/** Push notifications to this device. */

export interface PushRegistration<Topic extends string = string> {
  serviceWorker: ServiceWorkerRegistration | string
  topics?: Topic[]
}

export interface Push<Topic extends string = string> {
  register(options: PushRegistration<Topic>): Promise<void>
  unregister(): Promise<void>
  subscribe(topic: Topic): Promise<void>
  unsubscribe(topic: Topic): Promise<void>
}
