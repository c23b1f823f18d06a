/** What an attack on the project's own rules is, and the commands that run it. It runs in a shell, never here. */
import { CodeBlock } from '../../design/code-block.tsx'
import { Card } from '../../design/page.tsx'

export const Attack = () => (
  <div className="rules-attack">
    <Card title="Try to break your own rules">
      <div className="stack">
        <p>
          The command starts your configuration on an empty folder, stores records and files of a victim, and really
          tries to read and change them: as an anonymous caller, as a user of another tenant and as another user. It
          tries tables, buckets, rooms, functions, key-value stores, SQL databases and vector indexes. Then it removes
          the folder.
        </p>
        <CodeBlock label="In the folder of the configuration" code="npx plinth rules attack" />
        <p>
          Each finding names the caller who needs the least, and the rule that let it through. Name the findings that
          are intended; with all of them allowed the command exits with 0, so that it can be a step of continuous
          integration.
        </p>
        <CodeBlock label="With exceptions" code="npx plinth rules attack --allow shared.posts:read" />
      </div>
    </Card>
    <Card title="A server in use">
      <div className="stack">
        <p>
          With <code>--url</code> nothing is attempted. The server explains what it would answer to an anonymous caller
          and to a user without claims, for up to 20 stored records of each table of a static namespace.
        </p>
        <CodeBlock label="This server" code={`npx plinth rules attack --url ${location.origin}`} />
        <p className="rules-quiet">
          An attack finds what is open for the records that it makes up. A rule that opens one record of a thousand is
          found by the matrix, which shows the condition.
        </p>
      </div>
    </Card>
  </div>
)
