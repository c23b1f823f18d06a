/** The log lines of several nodes, searched through one of them. */
import { describe, expect, test } from 'bun:test'
import { query } from '../harness/client.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { sharedEngine } from '../harness/engines.ts'
import { openNodes } from '../harness/nodes.ts'
import { expectRefusal } from '../harness/refusal.ts'
import type { TestServer } from '../harness/server.ts'

const closing = closeAfterEach()

interface Line {
  readonly at: string
  readonly requestId: string
  readonly node: { readonly id: string }
}

if (sharedEngine)
  describe('log lines of several nodes', () => {
    test('[SYS-26] are one list, newest first, in pages and by node', async () => {
      const { nodes } = closing(await openNodes(sharedEngine, 3, { config: {} }), ({ close }) => close())
      const [first, , third] = nodes as [TestServer, TestServer, TestServer]
      const read = async (filter: Record<string, unknown>) =>
        (await first.service.get(`/api/logs${query({ q: 'marked', ...filter })}`)).body
      // A node knows the others once they have announced themselves.
      for (let attempts = 0; attempts < 1000; attempts++) if ((await read({})).nodes.length === 3) break
      const sent: string[] = []
      for (let at = 0; at < 9; at++) {
        const answer = await (nodes[at % 3] as TestServer).anonymous.get(`/api/health?marked=${at}`)
        sent.push(answer.headers.get('x-request-id') ?? '')
      }
      const filter = { event: 'http.request', q: '/api/health' }
      const lines: Line[] = []
      let cursor: string | null | undefined
      do {
        const page: { items: Line[]; cursor: string | null; nodes: object[] } = await read({
          ...filter,
          limit: 2,
          cursor,
        })
        expect(page.items.length).toBeLessThanOrEqual(2)
        expect(page.nodes).toHaveLength(3)
        lines.push(...page.items)
        cursor = page.cursor
      } while (cursor !== null)
      expect(lines.map(({ at }) => at)).toEqual(
        lines
          .map(({ at }) => at)
          .toSorted()
          .reverse(),
      )
      expect(
        lines
          .map(({ requestId }) => requestId)
          .filter((id) => sent.includes(id))
          .toSorted(),
      ).toEqual(sent.toSorted())
      expect(new Set(lines.map(({ node }) => node.id)).size).toBe(3)

      // The line of any request is found from any node.
      const [line] = (await read({ q: undefined, requestId: sent[2] })).items as [Line]
      const own = (await third.service.get('/api/logs?limit=1')).body.nodes[0]
      expect(line.node).toEqual(own)
      const ofOne = (await read({ ...filter, node: own.id })).items as Line[]
      expect(ofOne.map(({ requestId }) => requestId).filter((id) => sent.includes(id))).toEqual(
        [sent[8], sent[5], sent[2]].map(String),
      )
      const page = await read({ ...filter, limit: 2 })
      expectRefusal(await first.service.get(`/api/logs${query({ ...filter, node: own.id, cursor: page.cursor })}`), 400)
    })
  })
