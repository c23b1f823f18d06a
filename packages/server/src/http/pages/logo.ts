/** The logo of the pages of the server: a column on a plinth, in the color of the text around it. */

/** An SVG element. */
export const logo = `<svg viewBox="0 0 48 48" aria-hidden="true"><g fill="currentColor">
<rect x="10" y="5" width="28" height="5" rx="1.5"/>
<rect x="15" y="12" width="4" height="20" rx="1"/>
<rect x="22" y="12" width="4" height="20" rx="1"/>
<rect x="29" y="12" width="4" height="20" rx="1"/>
<rect x="10" y="34" width="28" height="4" rx="1"/>
<rect x="5" y="40" width="38" height="5" rx="1.5"/>
</g></svg>`
