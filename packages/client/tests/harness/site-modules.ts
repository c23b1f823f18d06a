/** The script of the pages of a site: the modules of the client as globals, which tests control. */
import * as plinth from '../../src/all.ts'
import * as ssr from '../../src/ssr/index.ts'

Object.assign(globalThis, { plinth, ssr })
