/** Distances in responses, and `near` and `within` wherever conditions are taken, or refused. */
import { expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { changeOf, watch } from '../../harness/records/live.ts'
import {
  berlin,
  config,
  ids,
  near,
  nearby,
  shared,
  spots,
  square,
  useSpots,
  visits,
} from '../../harness/records/spots.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

describeServer('conditions on locations', { config }, (server) => {
  const list = useSpots(server)

  test('[DB-GEO-7] items of lists and searches have their distances in meters', async () => {
    const filter = [near(berlin, '50km')]
    const expected = { alexanderplatz: 2593, potsdam: 25788 }
    for (const parameters of [
      { filter },
      { filter, fields: 'id' },
      { filter, sort: 'location.distance:asc', after: '' },
      { filter, include: { visits: {} } },
    ]) {
      const { body } = await list(parameters)
      expect(body.items).toHaveLength(2)
      for (const { id, distances } of body.items)
        expect(Math.abs(distances.location - expected[id as keyof typeof expected])).toBeLessThan(15)
    }
    const found = await server.anonymous.get(`${spots}/search${query({ q: 'stop', filter })}`)
    expect(found.body.items.map(({ distances }: { distances: object }) => Object.keys(distances))).toEqual([
      ['location'],
      ['location'],
    ])
    expect(found.body.items[0].highlights).toBeDefined()
    const both = await list({ filter: [...filter, near([13.0645, 52.3906], '0m', 'plain')] })
    expect(both.body.items[0].distances.plain).toBe(0)
    expect((await list({ filter: [['location', 'within', square]] })).body.items[0].distances).toBeUndefined()
  })

  test('[DB-GEO-7] of several near on a field the first one counts', async () => {
    const orFilter = [near([9.9937, 53.5511], '1km'), near(berlin, '5km')]
    const { body } = await list({ orFilter, sort: 'location.distance:asc' })
    expect(ids({ body })).toEqual(['hamburg', 'hamburg-2', 'alexanderplatz'])
    expect(body.items[0].distances.location).toBe(0)
  })

  test('[DB-GEO-3] aggregates, batches by filter, checks of lists and related records take the conditions', async () => {
    const filter = [near(berlin, '50km')]
    const { body } = await server.anonymous.get(`${spots}/aggregate${query({ measures: { n: 'count' }, filter })}`)
    expect(body.groups).toEqual([{ n: 2 }])
    expect(ids(await list({ filter: [['spot.location', 'near', [...berlin, '50km']]], sort: 'n' }, visits))).toEqual([
      'visit-0',
      'visit-1',
    ])
    expect(
      ids(
        await list({
          filter: [
            ['visits', 'some', [['n', '<', 2]]],
            ['location', 'within', square],
          ],
        }),
      ).toSorted(),
    ).toEqual(['alexanderplatz', 'potsdam'])
    const related = { spot: { where: [['location', 'within', square]], fields: ['id'] } }
    const included = await list({ include: related, sort: 'n', limit: 5 }, visits)
    expect(included.body.items.map(({ spot }: { spot: { id: string } | null }) => spot?.id ?? null)).toEqual([
      'alexanderplatz',
      'potsdam',
      'hamburg',
      'hamburg-2',
      null,
    ])
    const checked = await list({ filter, sort: 'location.distance:asc', check: 1 })
    const transaction = (n: number) =>
      server.anonymous.post(`${shared}/transaction`, {
        operations: [
          { table: 'spots', check: checked.body.check },
          { table: 'visits', insert: { id: `tx-${n}`, spotId: 'south', n: 99 } },
        ],
      })
    expect((await transaction(1)).status).toBe(200)
    await server.anonymous.patch(`${spots}/potsdam`, { name: 'stop potsdam' })
    expectRefusal(await transaction(2), 409)
    const changed = await server.anonymous.post(`${spots}/batch-by-filter`, {
      action: 'update',
      filter: [near([77, -90], '1m')],
      data: { name: 'stop pole' },
    })
    expect(changed.body).toMatchObject({ processed: 1, succeeded: 1 })
    expect((await server.anonymous.get(`${spots}/south`)).body.name).toBe('stop pole')
  })

  test('[DB-GEO-8] related records are in the order of their distance', async () => {
    for (const id of ['alexanderplatz', 'potsdam', 'hamburg', 'hamburg-2', 'suva'])
      expect((await server.anonymous.patch(`${spots}/${id}`, { hubId: 'alert' })).status).toBe(200)
    const where = [near(berlin, '500km')]
    const includedOf = async (sort: string) => {
      const { body } = await list({
        filter: [['id', '==', 'alert']],
        include: { spots: { where, sort, limit: 3, count: true, fields: ['id'] } },
      })
      const [{ spots: related }] = body.items
      return [related.total, ...related.items.map(({ id }: { id: string }) => id)]
    }
    expect(await includedOf('location.distance:asc')).toEqual([4, 'alexanderplatz', 'potsdam', 'hamburg'])
    expect(await includedOf('location.distance:desc')).toEqual([4, 'hamburg-2', 'hamburg', 'potsdam'])
    const elsewhere = { filter: where, include: { spots: { sort: 'location.distance' } } }
    expectRefusal(await server.anonymous.get(spots + query(elsewhere)), 400, 'include.spots.sort')
  })

  test('[DB-GEO-3] access rules take the conditions, and an update moves a record out of view', async () => {
    expect(ids(await list({}, nearby))).toEqual(['alexanderplatz'])
    expectRefusal(await server.anonymous.get(`${nearby}/hamburg`), 404)
    await server.service.patch(`${nearby}/hamburg-2`, { location: [13.41, 52.51] })
    expect(ids(await list({ sort: 'id' }, nearby))).toEqual(['alexanderplatz', 'hamburg-2'])
    await server.service.patch(`${nearby}/hamburg-2`, { location: null })
    expect(ids(await list({}, nearby))).toEqual(['alexanderplatz'])
    expect((await list({}, nearby)).body.items[0].distances).toBeUndefined()
  })

  test('[DB-GEO-3] subscriptions see records enter and leave an area', async () => {
    for (const filters of [
      [near(berlin, '5km')],
      [['location', 'within', square]],
      [
        [
          'location',
          'within',
          [
            [9, 52],
            [14, 54],
          ],
        ],
      ],
    ]) {
      const socket = await watch(server.url, { channel: 'dblive:shared:spots', subscribe: { filters } })
      const id = (await server.service.post(spots, { location: [0, 0] })).body.id as string
      await server.service.patch(`${spots}/${id}`, { location: [13.401, 52.501] })
      expect(changeOf(await socket.next()).slice(0, 2)).toEqual(['added', id])
      await server.service.patch(`${spots}/${id}`, { location: null })
      expect(changeOf(await socket.next()).slice(0, 2)).toEqual(['removed', id])
      await server.service.delete(`${spots}/${id}`)
      socket.close()
    }
  })

  test.each<[condition: unknown]>([
    [['location', 'near', [0, 0, '-1km']]],
    [['location', 'near', [0, 0]]],
    [['location', 'near', [0, 91, '1km']]],
    [['location', 'near', [0, 0, '30000km']]],
    [['location', 'near', [0, 0, '5 parsecs']]],
    [['location', 'near', null]],
    [
      [
        'location',
        'within',
        [
          [170, 0],
          [-170, 10],
        ],
      ],
    ],
    [
      [
        'location',
        'within',
        [
          [0, 0],
          [10, 10],
          [10, 0],
          [0, 10],
        ],
      ],
    ],
    [
      [
        'location',
        'within',
        [
          [170, 0],
          [-170, 0],
          [-170, 10],
        ],
      ],
    ],
    [['location', 'within', Array.from({ length: 101 }, (_, n) => [n, 0])]],
    [['location', '==', [0, 0]]],
    [['location', '>', 5]],
    [['location', 'in', [[0, 0]]]],
    [['location', 'contains', 0]],
    [['name', 'near', [0, 0, '1km']]],
    [['name', 'within', square]],
  ])('[DB-GEO-9] %j is 400 that names the condition', async (condition) => {
    const before = await server.dump(spots)
    const filter = [['name', '!=', ''], condition]
    for (const path of [spots, `${spots}/count`])
      expectRefusal(await server.anonymous.get(path + query({ filter })), 400, 'filter[1]')
    const body = { action: 'delete', filter }
    expectRefusal(await server.anonymous.post(`${spots}/batch-by-filter`, body), 400, 'filter[1]')
    expect(await server.dump(spots)).toEqual(before)
  })

  test('[DB-GEO-9] the polygons of a group have at most 200 points', async () => {
    const ring = Array.from({ length: 100 }, (_, n) => [10 * Math.cos(n / 16), 10 * Math.sin(n / 16)])
    const within = ['location', 'within', ring]
    const two = [within, within]
    const send = (filter: unknown[]) => server.anonymous.post(`${spots}/batch-by-filter`, { action: 'delete', filter })
    expect((await send([...two, ['name', '==', 'x']])).body).toMatchObject({ processed: 0 })
    expectRefusal(await send([...two, ['location', 'within', square]]), 400, 'filter[2]')
  })

  test('[DB-GEO-11] explain suggests the index that a geo field lacks', async () => {
    const explained = async (field: string) =>
      (await server.service.get(spots + query({ filter: [near(berlin, '5km', field)], explain: 1 }))).body.explain
    expect((await explained('plain')).suggestion).toEqual({ fields: ['plain'] })
    expect((await explained('location')).suggestion).toBeUndefined()
  })
})
