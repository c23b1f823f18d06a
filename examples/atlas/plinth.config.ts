/**
 * The atlas: countries and places anybody may read, what signed-in travellers add to them, and one private database per
 * traveller. Each table shows one thing a rule can do; README.md tries them all.
 */
import { and, defineConfig, exists, field, not, or } from 'plinth'

export default defineConfig({
  databases: {
    shared: {
      tables: {
        // Reference data: everybody reads. No rule for writing means that only the service key writes.
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
          search: ['name', 'officialName', 'capital'],
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
          },
          indexes: [{ fields: ['countryCode', 'name'] }, { fields: ['name'] }, { fields: ['lat'] }],
          search: ['name', 'regionName', 'countryName'],
          access: { read: true },
        },

        // A counter per place. A rule judges the row before and after, so a traveller may start one at 1 and change it
        // while it is not locked. It cannot tell +1 from +1000: where every voice must count once, keep a row per voice
        // (`favourites`).
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

        // Mine, those shared with all, and those of everybody who calls me a friend.
        favourites: {
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

        // No schema: any fields. Rules reach them all the same. A published note can no longer be changed by its
        // author.
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

        // How far `import.ts` came. No rules at all: only the service key sees it.
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

    // One database per traveller, named by the traveller's user id; whoever carries its name in the claim `trips` may
    // travel along.
    trip: {
      instance: true,
      access: (auth, travellerId) =>
        auth !== null && (auth.id === travellerId || [auth.custom.trips].flat().includes(travellerId)),
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
      // Travellers' photos: everybody sees what is marked as published, its owner everything. Other sizes are made on
      // demand.
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

  // Who is typing at a note: signed-in travellers see it, and nothing of it is stored.
  broadcasts: {
    'typing:*': { subscribe: (auth) => auth !== null, publish: (auth) => auth !== null },
  },

  api: { schemaEndpoint: true },
})
