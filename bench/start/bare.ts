/** The floor of a start: the runtime alone, which serves a constant. Prints its port. */
console.log(Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('ok') }).port)
