/**
 * The fan-out baseline, run as a process: `Bun.serve` with sockets subscribed to one topic, to which the runtime
 * publishes a fixed text for every request. It has no storage, filters or users. Prints its port when it listens.
 */

const topic = 'subscribers'
/** The message, split at the id, which differs between messages. */
let parts: readonly string[] = []

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: {
    '/message/:id': {
      PUT: async (request) => {
        parts = (await request.text()).split(request.params.id)
        return new Response(null, { status: 204 })
      },
    },
    '/publish/:id': {
      POST: (request) => {
        server.publish(topic, parts.join(request.params.id))
        return new Response('{}', { status: 201 })
      },
    },
    '/socket': (request, self) => (self.upgrade(request) ? undefined : new Response(null, { status: 400 })),
  },
  fetch: () => new Response('Not found', { status: 404 }),
  websocket: {
    idleTimeout: 0,
    sendPings: false,
    perMessageDeflate: false,
    open(socket) {
      socket.subscribe(topic)
      socket.send('{"type":"subscribed"}')
    },
    message() {},
  },
})
console.log(server.port)
