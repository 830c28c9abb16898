#include "postgres/executor/custom_scan.h"

namespace pgwarp
{

CustomExecMethods make_custom_methods(const CustomScanCallbacks& callbacks)
{
    CustomExecMethods methods = {};
    methods.CustomName = callbacks.name;
    methods.BeginCustomScan = callbacks.begin;
    methods.ExecCustomScan = callbacks.execute;
    methods.EndCustomScan = callbacks.end;
    methods.ReScanCustomScan = callbacks.rescan;
    methods.ExplainCustomScan = callbacks.explain;
    return methods;
}

}  // namespace pgwarp
