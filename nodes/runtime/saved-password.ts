/** What Node-RED shows in a form for a saved password in its stead. */
export const savedPassword = '__PWRD__';
