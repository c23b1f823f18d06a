/** An editor of JSON with syntax colors and errors where they are. A chunk of its own. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { linter } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { styleNonce } from '../../../app/nonce.ts'

export interface JsonEditorProps {
  readonly label: string
  readonly text: string
  readonly isReadOnly: boolean
  readonly onChange: (text: string) => void
}

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--accent-text)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: tags.number, color: 'var(--warn)' },
  { tag: [tags.bool, tags.null], color: 'var(--violet)' },
])

/** Of the editor itself, whose own styles are in no layer and would win over those of the area. */
const theme = EditorView.theme({
  '&': { maxHeight: '320px', background: 'var(--field)', fontSize: 'var(--text-12)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--font-mono)', lineHeight: '1.6' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderInlineStartColor: 'var(--text)' },
  '.cm-gutters': { border: '0', background: 'transparent', color: 'var(--text-3)' },
  '.cm-tooltip': { border: '1px solid var(--line)', background: 'var(--raised)', color: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--accent) 28%, transparent)',
  },
})

const parse = jsonParseLinter()
/** An empty text stands for no value. */
const findErrors = (view: EditorView) => (view.state.doc.length === 0 ? [] : parse(view))

const extensions = [
  lineNumbers(),
  history(),
  bracketMatching(),
  json(),
  linter(findErrors, { delay: 250 }),
  syntaxHighlighting(colors),
  theme,
  EditorView.lineWrapping,
  // Tab would trap the keyboard; Escape and then Tab leaves the editor.
  keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
]

export function JsonEditor({ label, text, isReadOnly, onChange }: JsonEditorProps) {
  const parent = useRef<HTMLDivElement>(null)
  const editor = useRef<EditorView | null>(null)
  const latest = useRef(onChange)
  latest.current = onChange
  const initial = useRef(text)

  useEffect(() => {
    if (parent.current === null) return
    const view = new EditorView({
      parent: parent.current,
      state: EditorState.create({
        doc: initial.current,
        extensions: [
          extensions,
          EditorView.cspNonce.of(styleNonce),
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorState.readOnly.of(isReadOnly),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current(update.state.doc.toString())
          }),
        ],
      }),
    })
    editor.current = view
    return () => view.destroy()
  }, [label, isReadOnly])

  useEffect(() => {
    const view = editor.current
    if (view && view.state.doc.toString() !== text)
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } })
  }, [text])
  return <div className="json-editor" ref={parent} />
}
