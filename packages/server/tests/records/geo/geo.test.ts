/** Geo fields: their values, `near`, `within`, and the order by distance. */
import { describe, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import {
  berlin,
  byName,
  config,
  ids,
  inSpace,
  type LonLat,
  near,
  shared,
  spots,
  square,
  useSpots,
} from '../../harness/records/spots.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

describeServer('geo', { config }, (server) => {
  const list = useSpots(server)

  test('[DB-GEO-1] a location is stored and answered as [longitude, latitude], and null is none', async () => {
    expect((await server.anonymous.get(`${spots}/hamburg`)).body.location).toEqual([9.9937, 53.5511])
    expect((await server.anonymous.get(`${spots}/nowhere`)).body.location).toBeNull()
    const needed = `${shared}/tables/needed`
    const made = await server.anonymous.post(needed, { location: [1e-200, -0] })
    expect([made.body.location, made.body.start]).toEqual([
      [0, 0],
      [0, 51.5],
    ])
    expect(made.text).toContain('"location":[0,0]')
    expectRefusal(await server.anonymous.post(needed, {}), 400, 'location')
  })

  test('[DB-GEO-2] what is no location is 400 that names the field, and changes nothing', async () => {
    const before = await server.dump(spots)
    const invalid = [
      [1],
      [1, 2, 3],
      ['1', 2],
      [181, 0],
      [-180.1, 0],
      [0, 91],
      [null, 0],
      { lon: 1, lat: 2 },
      '1,2',
      5,
      true,
      [],
    ]
    for (const location of invalid) {
      expectRefusal(await server.anonymous.post(spots, { location }), 400, '"location"')
      expectRefusal(await server.anonymous.patch(`${spots}/hamburg`, { location }), 400, '"location"')
      const batch = await server.anonymous.post(`${spots}/batch`, { inserts: [{ plain: location }] })
      expectRefusal(batch, 400, 'inserts[0].plain')
    }
    const infinite = { raw: '{"location":[1e999,0]}', headers: { 'content-type': 'application/json' } }
    expectRefusal(await server.anonymous.request('POST', spots, infinite), 400)
    const increment = { location: { $op: 'increment', value: 1 } }
    expectRefusal(await server.anonymous.patch(`${spots}/hamburg`, increment), 400, '"location"')
    expect(await server.dump(spots)).toEqual(before)
  })

  for (const field of ['location', 'plain'])
    describe(field === 'location' ? 'with an index' : 'without an index', () => {
      test.each<[name: string, center: LonLat, distance: string, found: readonly string[]]>([
        ['a town', berlin, '5km', ['alexanderplatz']],
        ['duplicates', [9.9937, 53.5511], '0m', ['hamburg', 'hamburg-2']],
        ['several', berlin, '300km', ['alexanderplatz', 'potsdam', 'hamburg', 'hamburg-2']],
        ['miles', berlin, '30mi', ['alexanderplatz', 'potsdam']],
        ['across the date line', [179, -16], '1500km', ['suva', 'apia']],
        ['the date line from the east', [-179.9, 0], '20km', ['line-east', 'line-west']],
        ['the pole from any longitude', [55, 90], '1km', ['north-1', 'north-2']],
        ['over the pole', [117.6519, 89], '1100km', ['north-1', 'north-2', 'alert']],
        ['the south pole', [0, -89.9], '12km', ['south']],
        ['the Earth', [0, 0], '20016km', Object.keys(byName).filter((id) => id !== 'nowhere')],
        ['none', [0, 0], '1m', []],
      ])('[DB-GEO-4] near: %s', async (_, center, distance, found) => {
        const filter = [near(center, distance, field)]
        expect(ids(await list({ filter })).toSorted()).toEqual(found.toSorted())
        expect((await server.anonymous.get(`${spots}/count${query({ filter })}`)).body.total).toBe(found.length)
        expect(ids(await list({ filter }, inSpace('x'))).toSorted()).toEqual(found.toSorted())
      })

      test.each<[name: string, area: unknown, found: readonly string[]]>([
        [
          'a box',
          [
            [9, 52],
            [14, 54],
          ],
          ['alexanderplatz', 'potsdam', 'hamburg', 'hamburg-2'],
        ],
        [
          'the edges of a box',
          [
            [9.9937, 52.3906],
            [13.0645, 53.5511],
          ],
          ['potsdam', 'hamburg', 'hamburg-2'],
        ],
        [
          'a point',
          [
            [180, 0],
            [180, 0],
          ],
          ['line-east'],
        ],
        [
          'the Earth',
          [
            [-180, -90],
            [180, 90],
          ],
          Object.keys(byName).filter((id) => id !== 'nowhere'),
        ],
        ['a polygon', square, ['alexanderplatz', 'potsdam', 'hamburg', 'hamburg-2']],
        ['a closed polygon', [...square, square[0]], ['alexanderplatz', 'potsdam', 'hamburg', 'hamburg-2']],
        [
          'a polygon with a notch',
          [...square.slice(0, 2), [11.5, 53.9], ...square.slice(2)],
          ['hamburg', 'hamburg-2', 'potsdam', 'alexanderplatz'].slice(0, 3),
        ],
        [
          'none',
          [
            [0, 1],
            [2, 3],
          ],
          [],
        ],
      ])('[DB-GEO-5] [DB-GEO-6] within %s', async (_, area, found) => {
        const filter = [[field, 'within', area]]
        expect(ids(await list({ filter })).toSorted()).toEqual(found.toSorted())
        expect((await server.anonymous.get(`${spots}/count${query({ filter })}`)).body.total).toBe(found.length)
      })

      test('[DB-GEO-8] the order by distance, by id where equal, in both paging modes', async () => {
        const nearest = ['alexanderplatz', 'potsdam', 'hamburg', 'hamburg-2', 'alert', 'north-1', 'north-2']
        const filter = [near(berlin, '20000km', field)]
        const all = ids(await list({ filter, sort: `${field}.distance` }))
        expect(all.slice(0, 7)).toEqual(nearest)
        expect(all).toHaveLength(Object.keys(byName).length - 1)
        const pages: string[] = []
        for (let page = 1; page <= 7; page++)
          pages.push(...ids(await list({ filter, sort: `${field}.distance:asc`, page, perPage: 2 })))
        expect(pages).toEqual(all)
        const forward: string[] = []
        for (let after: string | null = ''; after !== null; ) {
          const { body } = await list({ filter, sort: `${field}.distance:asc`, after, limit: 2 })
          forward.push(...body.items.map(({ id }: { id: string }) => id))
          after = body.hasMore ? body.cursor : null
        }
        expect(forward).toEqual(all)
        const backward: string[] = []
        for (let before: string | null = ''; before !== null; ) {
          const { body } = await list({ filter, sort: `${field}.distance:asc`, before, limit: 3 })
          backward.unshift(...body.items.map(({ id }: { id: string }) => id))
          before = body.hasMore ? body.cursor : null
        }
        expect(backward).toEqual(all)
        const farthest = ids(await list({ filter, sort: `${field}.distance:desc,id:desc` }))
        expect(farthest).toEqual(all.toReversed())
      })
    })

  test('[DB-GEO-8] records without a location are last, in both directions', async () => {
    const orFilter = [near(berlin, '5km'), ['location', '==', null]]
    for (const direction of ['asc', 'desc']) {
      const sort = `location.distance:${direction}`
      const answer = await list({ orFilter, sort })
      expect(ids(answer)).toEqual(['alexanderplatz', 'nowhere'])
      expect(answer.body.items[1].distances).toEqual({ location: null })
      const first = await list({ orFilter, sort, after: '', limit: 1 })
      expect(ids(await list({ orFilter, sort, after: first.body.cursor }))).toEqual(['nowhere'])
      expect(ids(await list({ orFilter, sort, before: 'nowhere' }))).toEqual(['alexanderplatz'])
    }
  })

  test('[DB-GEO-8] a cursor is valid for its center only', async () => {
    const sort = 'location.distance:asc'
    const { body } = await list({ filter: [near(berlin, '500km')], sort, after: '', limit: 1 })
    const other = query({ filter: [near([0, 0], '500km')], sort, after: body.cursor })
    expectRefusal(await server.anonymous.get(spots + other), 400, 'after')
  })

  test('[DB-GEO-8] a distance without near, of no geo field, and a location itself are no sort', async () => {
    const filter = [near(berlin, '5km')]
    for (const sort of [
      'plain.distance:asc',
      'name.distance',
      'other.distance',
      'location',
      'location:desc',
      'location.distance:up',
    ])
      expectRefusal(await server.anonymous.get(spots + query({ filter, sort })), 400, 'sort')
    const elsewhere = query({ filter: [['location', 'within', square]], sort: 'location.distance' })
    expectRefusal(await server.anonymous.get(spots + elsewhere), 400, 'sort')
  })
})
