/**
 * The atlas: public countries and places, records that signed-in travelers add to them, and a private database per
 * traveler. Each table demonstrates one kind of rule; README.md tries them all.
 */
import { and, defineConfig, exists, field, not, or } from 'plinth'

export default defineConfig({
  databases: {
    shared: {
      tables: {
        // Public reference data. Without a rule for writing, only the service key writes.
        countries: {
          schema: {
            iso3: { type: 'string', required: true, unique: true, pattern: '^[A-Z]{3}$' },
            name: { type: 'string', required: true, max: 100 },
            officialName: { type: 'string', max: 200 },
            region: { type: 'string', enum: ['Africa', 'Americas', 'Antarctic', 'Asia', 'Europe', 'Oceania'] },
            subregion: { type: 'string' },
            capital: { type: 'string' },
            area: { type: 'number', min: 0 },
            landlocked: { type: 'boolean', default: false },
            flag: { type: 'string' },
            lat: { type: 'number', min: -90, max: 90 },
            lng: { type: 'number', min: -180, max: 180 },
            borders: { type: 'json', default: [] },
            languages: { type: 'json', default: {} },
            currencies: { type: 'json', default: [] },
          },
          indexes: [{ fields: ['region', 'name'] }],
          search: [{ field: 'name', weight: 4 }, 'officialName', { field: 'capital', weight: 2 }],
          searchOptions: { typos: true },
          access: { read: true },
        },
        places: {
          schema: {
            name: { type: 'string', required: true, max: 200 },
            countryCode: { type: 'string', required: true, references: 'countries' },
            countryName: { type: 'string' },
            regionName: { type: 'string' },
            districtName: { type: 'string' },
            lat: { type: 'number', required: true, min: -90, max: 90 },
            lng: { type: 'number', required: true, min: -180, max: 180 },
            position: { type: 'geo', index: true },
          },
          indexes: [{ fields: ['countryCode', 'name'] }, { fields: ['name'] }, { fields: ['lat'] }],
          search: ['name', 'regionName', 'countryName'],
          access: { read: true },
        },

        // A counter per place. A rule is evaluated on the row before and after, so a traveler may start one at 1 and
        // change it while it is not locked. A rule cannot distinguish +1 from +1000: where every vote must count once,
        // store a row per vote (`favorites`).
        visits: {
          schema: {
            placeId: { type: 'string', required: true, unique: true, references: 'places' },
            count: { type: 'number', default: 0, min: 0 },
            locked: { type: 'boolean', default: false },
          },
          access: {
            read: true,
            insert: (auth) => auth && { count: 1, locked: false },
            update: (auth) => auth && { locked: false },
          },
        },

        // Readable by their owner, by the owner's friends, and by all callers when shared.
        favorites: {
          schema: {
            userId: { type: 'string', required: true },
            placeId: { type: 'string', required: true, references: 'places' },
            comment: { type: 'text', max: 1000 },
            stars: { type: 'number', min: 1, max: 5 },
            shared: { type: 'boolean', default: false },
            moderatorNote: { type: 'text' },
          },
          hidden: ['moderatorNote'],
          indexes: [{ fields: ['userId', 'placeId'], unique: true }, { fields: ['placeId', 'stars'] }],
          access: {
            read: (auth) =>
              auth
                ? or(
                    { userId: auth.id },
                    { shared: true },
                    exists('friends', { userId: field('userId'), friendId: auth.id }),
                  )
                : { shared: true },
            insert: (auth) => auth && { userId: auth.id },
            update: (auth) => auth && { userId: auth.id },
            delete: (auth) => auth && { userId: auth.id },
          },
        },

        // Places of travelers on the map, found by distance and within areas.
        landmarks: {
          schema: {
            userId: { type: 'string', required: true },
            title: { type: 'string', required: true, max: 200 },
            place: { type: 'geo', required: true, index: true },
          },
          access: {
            read: true,
            insert: (auth) => auth && { userId: auth.id },
            update: (auth) => auth && { userId: auth.id },
            delete: (auth) => auth && { userId: auth.id },
          },
        },

        friends: {
          schema: {
            userId: { type: 'string', required: true },
            friendId: { type: 'string', required: true },
          },
          indexes: [{ fields: ['userId', 'friendId'], unique: true }],
          access: {
            read: (auth) => auth && or({ userId: auth.id }, { friendId: auth.id }),
            insert: (auth) => auth && { userId: auth.id },
            delete: (auth) => auth && { userId: auth.id },
          },
        },

        // No schema: any fields, and rules apply to them all the same. Authors cannot change a published note.
        notes: {
          access: {
            read: (auth) => (auth ? or({ published: true }, { authorId: auth.id }) : { published: true }),
            insert: (auth) => auth && { authorId: auth.id },
            update: {
              before: (auth) => auth && and({ authorId: auth.id }, not({ published: true })),
              after: (auth) => auth && { authorId: auth.id },
            },
            delete: (auth) => auth && { authorId: auth.id },
          },
        },

        // The progress of `import.ts`. Without rules, only the service key has access.
        imports: {
          schema: {
            source: { type: 'string', required: true },
            total: { type: 'number', required: true, min: 0 },
            done: { type: 'number', required: true, min: 0 },
            finishedAt: { type: 'datetime' },
          },
        },
      },
    },

    // One database per traveler, named by the traveler's user id. Users with that id in the claim `trips` have access
    // too.
    trip: {
      instance: true,
      access: (auth, travelerId) =>
        auth !== null && (auth.id === travelerId || [auth.custom.trips].flat().includes(travelerId)),
      tables: {
        days: {
          schema: {
            date: { type: 'datetime', required: true },
            title: { type: 'string', required: true, max: 200 },
          },
          indexes: [{ fields: ['date'] }],
          access: { read: true, insert: true, update: true, delete: true },
        },
        stops: {
          schema: {
            dayId: { type: 'string', required: true, references: 'days' },
            placeId: { type: 'string', required: true },
            position: { type: 'number', required: true, min: 1 },
            nights: { type: 'number', default: 0, min: 0 },
            nightPrice: { type: 'number', min: 0 },
            price: { type: 'number', computed: (f) => f.nightPrice.times(f.nights).round(2) },
            booked: { type: 'boolean', default: false },
            comment: { type: 'text' },
          },
          indexes: [{ fields: ['dayId', 'position'] }],
          access: { read: true, insert: true, update: true, delete: true },
        },
      },
    },
  },

  storage: {
    buckets: {
      // Travelers' photos: published ones are public, owners see all of theirs. Other sizes are generated on demand.
      photos: {
        maxFileSize: '10mb',
        userQuota: '100mb',
        images: true,
        access: {
          read: (auth) =>
            auth
              ? or({ uploadedBy: auth.id }, { 'customMetadata.published': 'yes' })
              : { 'customMetadata.published': 'yes' },
          write: (auth) => auth && { uploadedBy: auth.id },
          delete: (auth) => auth && { uploadedBy: auth.id },
        },
      },
    },
  },

  // Typing indicators for notes: visible to signed-in travelers, and not stored.
  broadcasts: {
    'typing:*': { subscribe: (auth) => auth !== null, publish: (auth) => auth !== null },
  },

  api: { schemaEndpoint: true },
})
