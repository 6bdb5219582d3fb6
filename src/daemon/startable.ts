import { type LoadRequest, loadConfig } from '../config/load.ts'
import { selectBusiness } from '../config/select.ts'
import { loadSqlite } from '../store/sqlite.ts'

/** Would a host start with this? Throws what would keep it from it: `config-…`, `business-…`, `program-missing`. Opens nothing. */
export async function assertStartable(request: LoadRequest, business: string | undefined): Promise<void> {
  selectBusiness(await loadConfig(request), business)
  loadSqlite()
}
