/** The endpoints below `/api/fn`: one per method, because functions have paths of their own. */
import { type Endpoint, endpoint, type Method } from '../../http/endpoint.ts'
import { findHttp, functionsPath, type ServeDeps, serveFunction } from './invoke/serve.ts'

const methods: readonly (readonly [method: Method, name: string, summary: string])[] = [
  ['GET', 'functions.get', 'Call a function that serves GET'],
  ['POST', 'functions.call', 'Call a function'],
  ['PUT', 'functions.put', 'Call a function that serves PUT'],
  ['PATCH', 'functions.patch', 'Call a function that serves PATCH'],
  ['DELETE', 'functions.delete', 'Call a function that serves DELETE'],
]

const callDescription =
  'A function of kind `rpc` is called by its name: the body is its input, and the response its result. One that yields responds with server-sent events, a `data:` line of JSON each, and `event: error` with the error where it fails. A function of kind `http` serves a path and a method of its own, with any body and any response.'

export const createFunctionEndpoints = (deps: ServeDeps): readonly Endpoint[] =>
  methods.map(([method, name, summary]) =>
    endpoint({
      name,
      method,
      paths: [`${functionsPath}/:path+`],
      tag: 'Functions',
      summary,
      description: callDescription,
      credentials: 'rules',
      rateLimit: 'functions',
      allowsForeignAuthorization: (request) => findHttp(deps.served(), request) !== null,
      ...(method === 'GET' || method === 'DELETE' ? {} : { accepts: { contentType: 'application/json' } }),
      replies: { 200: { description: 'The result of the function' } },
      errors: [400, 401, 403, 404, 413, 415, 503, 504],
      allowsUnknownQuery: true,
      handle: (call) => serveFunction(deps, call),
    }),
  )
