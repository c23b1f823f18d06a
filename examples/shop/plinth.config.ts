/**
 * A small shop: products with a stock, and orders of signed-in customers. Customers read their own orders and write
 * nothing; `functions/` takes orders, payments and the stock.
 */
import { defineConfig } from 'plinth'

export default defineConfig({
  databases: {
    shared: {
      tables: {
        products: {
          schema: {
            name: { type: 'string', required: true, max: 200 },
            // In cents.
            price: { type: 'number', required: true, min: 0 },
            stock: { type: 'number', required: true, min: 0 },
          },
          access: { read: true },
        },

        orders: {
          schema: {
            userId: { type: 'string', required: true },
            email: { type: 'string', required: true },
            productId: { type: 'string', required: true, references: 'products' },
            productName: { type: 'string', required: true },
            quantity: { type: 'number', required: true, min: 1, max: 100 },
            total: { type: 'number', required: true, min: 0 },
            status: { type: 'string', required: true, enum: ['open', 'paid', 'canceled'] },
            paidAt: { type: 'datetime' },
            receiptAt: { type: 'datetime' },
          },
          indexes: [{ fields: ['userId', 'createdAt'] }, { fields: ['status', 'createdAt'] }],
          access: { read: (auth) => auth && { userId: auth.id } },
        },

        // One row for each day, written by a schedule.
        reports: {
          schema: {
            day: { type: 'string', required: true, unique: true },
            orders: { type: 'number', required: true },
            revenue: { type: 'number', required: true },
          },
        },
      },
    },
  },
  auth: { mail: { from: 'The shop <shop@example.com>' } },
})
