// Evaluates flags with the OpenFeature SDK as the test asks, one JSON line in, one out.
import { createInterface } from 'node:readline';
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';

const [baseUrl, token] = process.argv.slice(2);
const provider = (t) => new OFREPProvider({ baseUrl, headers: { Authorization: `Bearer ${t}` } });
await OpenFeature.setProviderAndWait('good', provider(token));
await OpenFeature.setProviderAndWait('wrong', provider('wrong'));

for await (const line of createInterface({ input: process.stdin })) {
  const { client, flag, context } = JSON.parse(line);
  const d = await OpenFeature.getClient(client).getStringDetails(flag, 'fallback', context);
  const { value, variant, reason, errorCode, errorMessage, flagMetadata } = d;
  console.log(JSON.stringify({ value, variant, reason, errorCode, errorMessage, flagMetadata }));
}
