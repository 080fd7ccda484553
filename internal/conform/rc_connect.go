package conform

var rcConnectCases, rcEndCases, rcRefusalCases, rcDepthCases []verbsCase
