/** The client of the search endpoint, with the service key. Only the server of the example uses it, never the page. */
import { type Client, createClient, records } from 'plinth-client'
import type config from './plinth.config.ts'

export type Plinth = Client<typeof config>

export const connect = (url: string, serviceKey: string): Plinth =>
  createClient<typeof config>(url, [records], { serviceKey })
