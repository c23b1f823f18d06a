/** Reads a QR code of a page as a camera would: from its dark and light squares. */
import type { Locator } from 'playwright-core'
import { decodeQR } from 'qr/decode.js'

/** Pixels of a module. */
const scale = 4

/** The text of a QR code whose path has one rectangle per run of dark modules. Throws if it cannot be read. */
export async function readQrCode(svg: Locator): Promise<string> {
  const size = Number((await svg.getAttribute('viewBox'))?.split(' ')[2])
  const path = (await svg.locator('path').getAttribute('d')) ?? ''
  const width = size * scale
  const data = new Uint8ClampedArray(width * width * 4).fill(255)
  for (const [, x, y, length] of path.matchAll(/M(\d+) (\d+)h(\d+)v1H\1z/g))
    for (let row = Number(y) * scale; row < (Number(y) + 1) * scale; row++)
      for (let column = Number(x) * scale; column < (Number(x) + Number(length)) * scale; column++)
        data.fill(0, (row * width + column) * 4, (row * width + column) * 4 + 3)
  return decodeQR({ width, height: width, data })
}
