/**
 * Places of the atlas, and travelers who move between them. A page shows live the travelers that the read rule allows
 * its user to see. README.md is a walkthrough.
 */
import { defineConfig, or } from 'plinth'

const regions = ['Africa', 'Americas', 'Antarctic', 'Asia', 'Europe', 'Oceania'] as const

export default defineConfig({
  databases: {
    shared: {
      tables: {
        // The map is drawn from the places. Readable by all; without write rules, only a service key can write.
        places: {
          schema: {
            name: { type: 'string', required: true, max: 200 },
            countryName: { type: 'string', required: true },
            region: { type: 'string', required: true, enum: regions },
            lat: { type: 'number', required: true, min: -90, max: 90 },
            lng: { type: 'number', required: true, min: -180, max: 180 },
          },
          access: { read: true },
        },

        // All users see shared travelers and their own; only the owner can move a traveler.
        travelers: {
          schema: {
            userId: { type: 'string', required: true },
            name: { type: 'string', required: true, max: 40 },
            placeId: { type: 'string', required: true, references: 'places' },
            placeName: { type: 'string', required: true, max: 200 },
            region: { type: 'string', required: true, enum: regions },
            lat: { type: 'number', required: true, min: -90, max: 90 },
            lng: { type: 'number', required: true, min: -180, max: 180 },
            shared: { type: 'boolean', default: true },
            budget: { type: 'number', default: 0 },
          },
          // Sent to service keys only, and never over a socket.
          hidden: ['budget'],
          access: {
            read: (auth) => (auth ? or({ shared: true }, { userId: auth.id }) : { shared: true }),
            insert: (auth) => auth && { userId: auth.id },
            update: (auth) => auth && { userId: auth.id },
            delete: (auth) => auth && { userId: auth.id },
          },
        },
      },
    },
  },
})
