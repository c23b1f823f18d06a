/** Spots in several tables, for tests of geo fields: a town, duplicates, poles, the date line, and one nowhere. */
import { beforeAll, expect } from 'bun:test'
import { where } from '../../../src/access/filter.ts'
import { query } from '../client.ts'
import { open } from '../config.ts'
import type { TestServer } from '../server.ts'

export const shared = '/api/db/shared'
export const spots = `${shared}/tables/spots`
export const visits = `${shared}/tables/visits`
export const nearby = `${shared}/tables/nearby`
export const inSpace = (id: string): string => `/api/db/space/${id}/tables/spots`

const schema = {
  name: { type: 'string' },
  location: { type: 'geo', index: true },
  plain: { type: 'geo' },
  hubId: { type: 'string' },
} as const
export const config = {
  databases: {
    shared: {
      tables: {
        spots: {
          schema: { ...schema, hubId: { type: 'string', references: 'spots' } },
          search: ['name'],
          access: open,
        },
        visits: { schema: { spotId: { type: 'string', references: 'spots' }, n: { type: 'number' } }, access: open },
        nearby: { schema, access: { ...open, read: () => where('location', 'near', [13.4, 52.5, '10km']) } },
        needed: {
          schema: { location: { type: 'geo', required: true }, start: { type: 'geo', default: [-0, 51.5] } },
          access: open,
        },
      },
    },
    space: { instance: true, access: () => true, tables: { spots: { schema, access: open } } },
  },
}

export type LonLat = readonly [number, number]
export const byName: Readonly<Record<string, LonLat | null>> = {
  alexanderplatz: [13.4132, 52.5219],
  potsdam: [13.0645, 52.3906],
  hamburg: [9.9937, 53.5511],
  'hamburg-2': [9.9937, 53.5511],
  suva: [178.4419, -18.1416],
  apia: [-171.7514, -13.8333],
  'north-1': [0, 90],
  'north-2': [-120, 90],
  alert: [-62.3481, 82.5018],
  south: [77, -90],
  'line-east': [180, 0],
  'line-west': [-180, 0],
  nowhere: null,
}
const rows = Object.entries(byName).map(([id, location]) => ({ id, name: `stop ${id}`, location, plain: location }))
export const berlin = [13.4, 52.5] as const

export const ids = (answer: { body: { items: { id: string }[] } }): string[] => answer.body.items.map(({ id }) => id)
export const near = (center: LonLat, distance: string, field = 'location') => [field, 'near', [...center, distance]]
export const square = [
  [9, 52],
  [14, 52],
  [14, 54],
  [9, 54],
]

/** Inserts the rows before the tests of a server; returns a function that lists. */
export function useSpots(server: TestServer) {
  beforeAll(async () => {
    for (const table of [spots, nearby, inSpace('x')])
      expect((await server.service.post(`${table}/batch`, { inserts: rows })).status).toBe(200)
    const inserts = Object.keys(byName).map((spotId, n) => ({ id: `visit-${n}`, spotId, n }))
    expect((await server.service.post(`${visits}/batch`, { inserts })).status).toBe(200)
  })

  return async (parameters: Readonly<Record<string, unknown>>, table = spots) => {
    const answer = await server.anonymous.get(table + query(parameters))
    expect(answer.status, answer.text).toBe(200)
    return answer
  }
}
