import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMailTemplates } from './mail-templates.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-mail-templates-'))
afterAll(() => rmSync(folder, { recursive: true }))
const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)

const text = 'Subject: Order {{number}}\n\nHello {{name}}!\n{{#items}}- {{title}}\n{{/items}}'
write('receipt.txt', text)
write('receipt.html', '<p>Hello {{name}}</p>')
write('plain.txt', 'Subject: Hi\r\n\r\nText')
write('headless.txt', 'Hello')
write('broken.txt', 'Subject: Hi\n\n{{#open}}')

const templates = createMailTemplates(folder)

test('[FN-MAIL-3] values are inserted as they are in the text, and escaped in the HTML', () => {
  const data = { number: 7, name: '<b>Ada</b>', items: [{ title: 'Tea & milk' }, { title: 'Cup' }] }
  expect(templates.render('receipt', data)).toEqual({
    subject: 'Order 7',
    text: 'Hello <b>Ada</b>!\n- Tea & milk\n- Cup\n',
    html: '<p>Hello &lt;b&gt;Ada&lt;&#x2F;b&gt;</p>',
  })
  expect(templates.render('plain', {})).toEqual({ subject: 'Hi', text: 'Text' })
})

test('[FN-MAIL-3] a template that is missing or faulty is named', () => {
  for (const name of ['missing', '../receipt', 'a/b', ''])
    expect(() => templates.render(name, {})).toThrow(`There is no mail template "${name}"`)
  expect(() => templates.render('headless', {})).toThrow('must begin with a line "Subject: …"')
  expect(() => templates.render('broken', {})).toThrow('Unclosed section "open"')
})
