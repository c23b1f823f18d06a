/** Icons of one style: outlines of 1.5 on a grid of 16, in the color of the text beside them. */
import { logoShapes, logoViewBox } from '../../../server/src/http/pages/logo.ts'

const paths = {
  home: 'M2.5 7 8 2.5 13.5 7v5.5a1 1 0 0 1-1 1h-3v-4h-3v4h-3a1 1 0 0 1-1-1z',
  data: 'M3 4c0-1.1 2.2-2 5-2s5 .9 5 2-2.2 2-5 2-5-.9-5-2zm0 0v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2',
  table: 'M2.5 3.5a1 1 0 0 1 1-1h9a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1zM2.5 6.5h11M6.5 6.5v7',
  rules: 'M8 1.8 13 3.6v4.1c0 3-2 5.3-5 6.5-3-1.2-5-3.5-5-6.5V3.6zM5.8 7.9l1.6 1.6 2.9-3.1',
  users:
    'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zm-4.5 6c0-2.2 2-3.7 4.5-3.7s4.5 1.5 4.5 3.7M11 2.8a2.3 2.3 0 0 1 0 4.5m1.2 2.7c1.4.5 2.3 1.8 2.3 3.5',
  user: 'M8 7.5A2.75 2.75 0 1 0 8 2a2.75 2.75 0 0 0 0 5.5zM3 14c0-2.5 2.2-4 5-4s5 1.5 5 4',
  files: 'M2 4.5a1 1 0 0 1 1-1h3.2l1.6 1.8H13a1 1 0 0 1 1 1v5.2a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1z',
  file: 'M4 2.5h5L12.5 6v7a.5.5 0 0 1-.5.5H4a.5.5 0 0 1-.5-.5V3a.5.5 0 0 1 .5-.5zM9 2.5V6h3.5',
  live: 'M8 9a1 1 0 1 0 0-2 1 1 0 0 0 0 2zM5.2 10.8a4 4 0 0 1 0-5.6m5.6 0a4 4 0 0 1 0 5.6M3.1 12.9a7 7 0 0 1 0-9.8m9.8 0a7 7 0 0 1 0 9.8',
  code: 'm5.5 4.5-3.5 3.5 3.5 3.5m5-7 3.5 3.5-3.5 3.5M9.2 2.8l-2.4 10.4',
  stores: 'M2.5 3h11v3.5h-11zM2.5 9.5h11V13h-11zM5 4.8h.01M5 11.2h.01',
  push: 'M4 7a4 4 0 1 1 8 0c0 3 1.5 4 1.5 4h-11S4 10 4 7zm2.7 6.3a1.5 1.5 0 0 0 2.6 0',
  insights: 'M2.5 2.5v11h11M5.5 10.5v-3m3 3v-6m3 6V6.5',
  logs: 'M3 3.5h10M3 6.5h7M3 9.5h10M3 12.5h5',
  backups: 'M2.5 8a5.5 5.5 0 1 0 1.8-4M2.5 2.5v2.8h2.8M8 5v3.2l2 1.3',
  settings:
    'M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4zm5.3-2c0-.4 0-.7-.1-1l1.3-1-1.3-2.3-1.6.6a5 5 0 0 0-1.7-1L9.6 1.7H6.4l-.3 1.6a5 5 0 0 0-1.7 1l-1.6-.6L1.5 6l1.3 1a6 6 0 0 0 0 2l-1.3 1 1.3 2.3 1.6-.6a5 5 0 0 0 1.7 1l.3 1.6h3.2l.3-1.6a5 5 0 0 0 1.7-1l1.6.6 1.3-2.3-1.3-1c.1-.3.1-.6.1-1z',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zm3.3-1.2 3.2 3.2',
  plus: 'M8 3v10M3 8h10',
  close: 'm4 4 8 8m0-8-8 8',
  check: 'm3 8.5 3.2 3.2L13 5',
  minus: 'M3.5 8h9',
  'chevron-down': 'm4 6 4 4 4-4',
  'chevron-right': 'm6 4 4 4-4 4',
  'chevron-left': 'm10 4-4 4 4 4',
  chevrons: 'm5 6 3-3 3 3m-6 4 3 3 3-3',
  'arrow-up': 'M8 13V3M4 7l4-4 4 4',
  'arrow-down': 'M8 3v10M4 9l4 4 4-4',
  'arrow-right': 'M3 8h10M9 4l4 4-4 4',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  copy: 'M5.5 5.5v-2a1 1 0 0 1 1-1h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-2m-7-5h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-6a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1z',
  trash:
    'M2.5 4.5h11M6 4.5V3a.5.5 0 0 1 .5-.5h3a.5.5 0 0 1 .5.5v1.5m-6.5 0 .6 8.5a1 1 0 0 0 1 .5h5.8a1 1 0 0 0 1-.5l.6-8.5M6.5 7v4m3-4v4',
  edit: 'm9.5 4 2.5 2.5M3 13l.6-2.7 7-7a1.2 1.2 0 0 1 1.7 0l.4.4a1.2 1.2 0 0 1 0 1.7l-7 7z',
  refresh: 'M13.5 8a5.5 5.5 0 1 1-1.6-3.9M13.5 2v2.8h-2.8',
  filter: 'M2.5 4h11M4.5 8h7m-5 4h3',
  columns: 'M2.5 3.5a1 1 0 0 1 1-1h9a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1zm3.7-1v11m3.6-11v11',
  sort: 'M5 3v10M2.5 10.5 5 13l2.5-2.5M11 13V3M8.5 5.5 11 3l2.5 2.5',
  key: 'M10 8.5a3 3 0 1 0-2.6-1.6L2.5 11.8v1.7h2v-1.3h1.3v-1.3h1.3l1-1A3 3 0 0 0 10 8.5zm.9-3.4h.01',
  lock: 'M3.5 7.5h9v6h-9zM5.5 7.5v-2a2.5 2.5 0 0 1 5 0v2',
  'sign-out': 'M6 13.5H3a.5.5 0 0 1-.5-.5V3a.5.5 0 0 1 .5-.5h3M10.5 11l3-3-3-3m3 3H6',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1m0 11v1M3.4 3.4l.7.7m7.8 7.8.7.7M1.5 8h1m11 0h1M3.4 12.6l.7-.7m7.8-7.8.7-.7',
  moon: 'M13.5 9.5A5.8 5.8 0 0 1 6.5 2.5a5.8 5.8 0 1 0 7 7z',
  monitor: 'M2 3h12v8H2zM5.5 13.5h5M8 11v2.5',
  alert: 'M8 2 1.8 13h12.4zM8 6.5v3M8 11.3h.01',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zm0-6.5V11M8 5.2h.01',
  link: 'M6.8 9.2a2.7 2.7 0 0 0 3.8 0l2.2-2.2A2.7 2.7 0 1 0 9 3.2l-.8.8m1 2.8a2.7 2.7 0 0 0-3.8 0L3.2 9A2.7 2.7 0 1 0 7 12.8l.8-.8',
  external: 'M9.5 2.5h4v4M13.5 2.5 7.5 8.5M11.5 9.5V13a.5.5 0 0 1-.5.5H3a.5.5 0 0 1-.5-.5V5a.5.5 0 0 1 .5-.5h3.5',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  command:
    'M5.5 5.5h5v5h-5zM5.5 5.5H4.2a1.7 1.7 0 1 1 1.3-1.7zm5 0V3.8a1.7 1.7 0 1 1 1.3 1.7zm0 5h1.3a1.7 1.7 0 1 1-1.3 1.7zm-5 0v1.7a1.7 1.7 0 1 1-1.3-1.7z',
  text: 'M3 4V3h10v1M8 3v10m-2 0h4',
  number: 'M6.5 2.5 5 13.5m6-11-1.5 11M2.5 6h11m-11.5 4h11',
  boolean: 'M5 4.5h6a3.5 3.5 0 0 1 0 7H5a3.5 3.5 0 0 1 0-7zm6 5.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  json: 'M6 2.5c-1.7 0-2 .6-2 2v1.7c0 1-.5 1.8-1.5 1.8 1 0 1.5.8 1.5 1.8v1.7c0 1.4.3 2 2 2m4-11c1.7 0 2 .6 2 2v1.7c0 1 .5 1.8 1.5 1.8-1 0-1.5.8-1.5 1.8v1.7c0 1.4-.3 2-2 2',
  datetime:
    'M2.5 4a.5.5 0 0 1 .5-.5h10a.5.5 0 0 1 .5.5v9a.5.5 0 0 1-.5.5H3a.5.5 0 0 1-.5-.5zM2.5 6.5h11M5.5 2v2.5m5-2.5v2.5',
  geo: 'M8 14s4.5-4.2 4.5-7.5a4.5 4.5 0 1 0-9 0C3.5 9.8 8 14 8 14zm0-6a1.7 1.7 0 1 0 0-3.4A1.7 1.7 0 0 0 8 8z',
  bolt: 'M9 1.5 3 9h4.5L7 14.5 13 7H8.5z',
  undo: 'M3 6.5h6.5a3.5 3.5 0 0 1 0 7H6M3 6.5l3-3m-3 3 3 3',
  upload: 'M8 10.5v-8m-3 3 3-3 3 3M2.5 10.5v2a1 1 0 0 0 1 1h9a1 1 0 0 0 1-1v-2',
  download: 'M8 2.5v8m-3-3 3 3 3-3M2.5 10.5v2a1 1 0 0 0 1 1h9a1 1 0 0 0 1-1v-2',
  passkey:
    'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zm-4.5 6c0-2.2 2-3.7 4.5-3.7.8 0 1.5.1 2.2.4M12 10a1.8 1.8 0 1 0-.9-3.4A1.8 1.8 0 0 0 12 10zm0 0v4l1.2-1M12 12h1.2',
} as const

export type IconName = keyof typeof paths

export const iconNames = Object.keys(paths) as readonly IconName[]

export interface IconProps {
  readonly name: IconName
  /** In pixels. */
  readonly size?: number
  /** Read to those who do not see it. Without it the icon decorates the text beside it. */
  readonly label?: string
}

export function Icon({ name, size = 16, label }: IconProps) {
  const isNamed = label !== undefined
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
      role={isNamed ? 'img' : undefined}
      aria-label={label}
      aria-hidden={isNamed ? undefined : true}
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  )
}

/** The mark of Plinth: a column on its base, as on the page at `/`. */
export function Logo({ size = 20 }: { readonly size?: number }) {
  return (
    <svg className="logo" width={size} height={size} viewBox={logoViewBox} aria-hidden="true" focusable="false">
      <g fill="currentColor">
        {logoShapes.map((shape) => (
          <rect key={`${shape.x} ${shape.y}`} {...shape} />
        ))}
      </g>
    </svg>
  )
}
