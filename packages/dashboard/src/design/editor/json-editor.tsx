/** An editor of JSON. A chunk of its own. */
import { json, jsonParseLinter } from '@codemirror/lang-json'
import { linter } from '@codemirror/lint'
import type { EditorView } from '@codemirror/view'
import { CodeEditor, type CodeEditorProps } from './code-editor.tsx'

const parse = jsonParseLinter()
/** An empty text stands for no value. */
const findErrors = (view: EditorView) => (view.state.doc.length === 0 ? [] : parse(view))

const language = [json(), linter(findErrors, { delay: 250 })]

export const JsonEditor = (props: Omit<CodeEditorProps, 'language' | 'problems'>) => (
  <CodeEditor {...props} language={language} />
)
