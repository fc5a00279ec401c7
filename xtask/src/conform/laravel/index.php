<?php
// The front controller, as Laravel's own skeleton has it: every address that is no file comes here.
require 'Illuminate/autoload.php';
$app = require __DIR__ . '/../bootstrap.php';
$kernel = $app->make(Illuminate\Contracts\Http\Kernel::class);
$request = Illuminate\Http\Request::capture();
$response = $kernel->handle($request)->send();
$kernel->terminate($request, $response);
