/** What a server without tables shows: the first table, and the first lines of a client. */
import { CodeBlock } from '../../design/code-block.tsx'
import { Card } from '../../design/page.tsx'

const configCode = `import { defineConfig } from 'plinth'

export default defineConfig({
  databases: {
    shared: {
      tables: {
        todos: {
          schema: {
            title: { type: 'string', required: true },
            done: { type: 'boolean', default: false },
            userId: { type: 'string', required: true },
          },
          access: {
            read: (auth) => auth && { userId: auth.id },
            insert: (auth) => auth && { userId: auth.id },
            update: (auth) => auth && { userId: auth.id },
            delete: (auth) => auth && { userId: auth.id },
          },
        },
      },
    },
  },
})`

const clientCode = (url: string): string => `import { auth, createClient, live, records } from 'plinth-client'
import type config from './plinth.config'

const plinth = createClient<typeof config>(
  '${url}',
  [records, auth, live],
)
const { user } = await plinth.auth.signInAnonymously()

const { todos } = plinth.db()
await todos.insert({ title: 'Try Plinth', userId: user.id })

const list = todos.sort('createdAt', 'desc').live()
list.subscribe(() => console.log(list.current.items))`

export const FirstSteps = () => (
  <Card title="Your first table">
    <ol className="home-steps">
      <li>
        <h3>Declare it</h3>
        <p>
          In <code>plinth.config.ts</code>. When you save the file in development mode, the table exists: with its
          rules, so that each user sees their own todos.
        </p>
        <CodeBlock label="plinth.config.ts" code={configCode} />
      </li>
      <li>
        <h3>Use it</h3>
        <p>
          From a browser, a server or a phone. What one client writes, the others see at once, if the rules permit it.
        </p>
        <CodeBlock label="npm install plinth-client" code={clientCode(location.origin)} />
      </li>
    </ol>
  </Card>
)
